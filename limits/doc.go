// Package limits says how much is too much: the settings, the profiles they
// come in, pure checks against them, and the rates. Every breach is a
// *queue.Error whose message names the setting to raise, spelled as in the
// config file ("limits.message-bytes").
//
// It counts nothing but rates: what a queue holds the caller knows and hands
// in. Ranges that are part of the API and not for an operator to change, such
// as the longest retention, live in package queue.
package limits
