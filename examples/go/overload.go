// Keeps to what an overloaded service asks for: the field Flashweir-Overload (docs/feedback.md). Standard library only.
//
//	limit := NewLimit("shop>api", map[byte][]byte{1: []byte("correct horse battery staple")})
//	client := &http.Client{Transport: &Transport{Limit: limit, Rank: 3}}
//
// One Limit for each server. A request that does not conform gets ErrRefused at once: nothing was sent.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"
)

// ErrRefused says that the service asked for less, and that this request was not sent.
var ErrRefused = errors.New("not sent: the service asked for less")

const (
	release     = math.MaxUint32   // the rate that ends a limit
	floor       = 0.1              // requests a second that go in any case
	burst       = 2.0              // tokens
	epochMemory = 20 * time.Second // of silence, after which an earlier epoch is believed
)

// Limit is what one service asked for. It may be used by several goroutines.
type Limit struct {
	mutex               sync.Mutex
	context             string
	keys                map[byte][]byte
	known, limited      bool
	epoch, sequence     uint32
	heard, expires      time.Time
	rank                byte
	rate, asOffered     float64
	offered, tokens     float64
	offeredAt, filledAt time.Time
	Ignored             int // fields that were not in order
}

// NewLimit makes one for a service with which this caller shares the context (both names) and the keys.
func NewLimit(context string, keys map[byte][]byte) *Limit {
	return &Limit{context: context, keys: keys, tokens: burst}
}

// message returns the 17 bytes of a field that is in order.
func (l *Limit) message(value string) ([]byte, bool) {
	if (len(value) != 26 && len(value) != 46) || value[0] != ':' || value[len(value)-1] != ':' {
		return nil, false
	}
	data, err := base64.StdEncoding.Strict().DecodeString(value[1 : len(value)-1])
	if err != nil || data[0]>>4 != 1 {
		return nil, false
	}
	id := data[0] & 15
	if id == 0 {
		return data, len(data) == 17 && len(l.keys) == 0
	}
	key, ok := l.keys[id]
	if !ok || len(data) != 33 {
		return nil, false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("Flashweir-Overload/1"))
	binary.Write(mac, binary.BigEndian, uint64(len(l.context)))
	mac.Write([]byte(l.context))
	mac.Write(data[:17])
	return data[:17], hmac.Equal(mac.Sum(nil)[:16], data[17:])
}

// Hear takes the field of a response in; an empty one says nothing.
func (l *Limit) Hear(value string, now time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if value == "" {
		return
	}
	data, ok := l.message(value)
	if ok {
		ttl := binary.BigEndian.Uint16(data[15:])
		ok = data[9] <= 15 && data[10] <= 8 && ttl >= 100 && ttl <= 10000
	}
	if !ok {
		l.Ignored++
		return
	}
	epoch, sequence := binary.BigEndian.Uint32(data[1:]), binary.BigEndian.Uint32(data[5:])
	newer := epoch > l.epoch || epoch == l.epoch && sequence > l.sequence
	if l.known && !newer && (epoch == l.epoch || now.Sub(l.heard) < epochMemory) {
		return // a copy, a late message or a replay
	}
	l.known, l.epoch, l.sequence, l.heard = true, epoch, sequence, now
	milli := binary.BigEndian.Uint32(data[11:])
	l.limited, l.rank = milli != release, data[9]
	l.asOffered = l.offeredNow(now)
	l.rate = math.Max(float64(milli)/1000, math.Max(l.asOffered/100, floor))
	l.expires = now.Add(time.Duration(binary.BigEndian.Uint16(data[15:])) * time.Millisecond)
}

func (l *Limit) offeredNow(now time.Time) float64 {
	return l.offered * math.Exp(-now.Sub(l.offeredAt).Seconds())
}

// allowed returns what may be sent a second, and whether there is a limit.
func (l *Limit) allowed(now time.Time) (float64, bool) {
	age := now.Sub(l.expires).Seconds()
	if !l.limited || age < 0 {
		return l.rate, l.limited
	}
	opening := math.Max(l.rate, l.asOffered/2) * math.Pow(1.5, math.Min(age, 10)) // not renewed: it opens step by step
	return opening, age < 10 && opening < 1.5*l.asOffered
}

// Admit says whether a request of this rank may be sent; then it counts as sent.
func (l *Limit) Admit(rank byte, now time.Time) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.offered, l.offeredAt = l.offeredNow(now)+1, now
	rate, limited := l.allowed(now)
	if !limited || rank < l.rank {
		return true
	}
	l.tokens, l.filledAt = math.Min(burst, l.tokens+now.Sub(l.filledAt).Seconds()*rate), now
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}

// Transport asks the limit before each request and hears each response.
type Transport struct {
	Limit *Limit
	Rank  byte
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if !t.Limit.Admit(t.Rank, time.Now()) {
		return nil, ErrRefused
	}
	request = request.Clone(request.Context())
	sender, _, _ := strings.Cut(t.Limit.context, ">")
	request.Header.Set("Flashweir-Sender", sender)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		t.Limit.Hear(response.Header.Get("Flashweir-Overload"), time.Now())
	}
	return response, err
}
