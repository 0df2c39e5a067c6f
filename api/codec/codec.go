// Package codec turns the messages of api/gen into octets and back for gRPC,
// on the server's side and on the client's. It is the codec "proto" that gRPC
// has anyway, quicker for the messages of the data plane: those have methods
// of their own that need no reflection.
//
// Two things are different in the data plane. The standard codec ends a call
// whose strings are not UTF-8 with the status Internal; this one hands them over
// as they are, and whoever reads a string must check it. And fields that nobody
// knows are kept without a look into them, or dropped inside a Timestamp: such
// a message must not be printed before it is trusted.
package codec

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// message is what protoc-gen-go-vtproto makes of a message.
type message interface {
	Reset()
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
	UnmarshalVT([]byte) error
}

// New is a codec for grpc.ForceServerCodecV2 and grpc.ForceCodecV2. It may be
// used by many goroutines. A message that is read owns its memory: nothing in
// it points into the buffers of gRPC.
func New() encoding.CodecV2 { return codec{encoding.GetCodecV2(proto.Name)} }

type codec struct {
	standard encoding.CodecV2 // for all other messages
}

// Name is "proto", which goes without saying in the content type of a call.
func (codec) Name() string { return proto.Name }

// Marshal is v in one buffer of the right size, from gRPC's pool unless it is
// small.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(message)
	if !ok {
		return c.standard.Marshal(v)
	}
	size := m.SizeVT()
	if mem.IsBelowBufferPoolingThreshold(size) {
		octets := make([]byte, size)
		if err := marshal(m, octets); err != nil {
			return nil, err
		}
		return mem.BufferSlice{mem.SliceBuffer(octets)}, nil
	}
	pool := mem.DefaultBufferPool()
	octets := pool.Get(size)
	if err := marshal(m, *octets); err != nil {
		pool.Put(octets)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(octets, pool)}, nil
}

// marshal fills octets, which has the size of m, from its end to its beginning.
func marshal(m message, octets []byte) error {
	n, err := m.MarshalToSizedBufferVT(octets)
	if err != nil {
		return fmt.Errorf("marshal %T: %w", m, err)
	}
	if n != len(octets) {
		return fmt.Errorf("marshal %T: %d octets instead of %d: it was changed meanwhile", m, n, len(octets))
	}
	return nil
}

// Unmarshal makes v what the octets say; what it was before is forgotten.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(message)
	if !ok {
		return c.standard.Unmarshal(data, v)
	}
	octets := data.MaterializeToBuffer(mem.DefaultBufferPool()) // a single buffer is not copied
	defer octets.Free()
	m.Reset()
	if err := m.UnmarshalVT(octets.ReadOnlyData()); err != nil {
		return fmt.Errorf("unmarshal %T: %w", m, err)
	}
	return nil
}
