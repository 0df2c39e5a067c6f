// Package visibility holds what a delivery hides a message with: the receipt
// that proves it and the timing wheel that ends it. Both are mechanisms
// without rules: a receipt that opens is one we made, whether it still holds
// is the broker's to say; a timer that fires has reached its instant, what
// follows is the broker's to do.
package visibility
