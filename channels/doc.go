// Package channels holds the rules about channels: which names are legal and
// which channels a filter selects. It keeps no list of channels and knows no
// messages; a channel is made by being used, and who uses it is the broker's
// business.
//
// A channel is named by a plain string, and the empty string is the unnamed
// channel: the queue itself, outside all channels.
package channels
