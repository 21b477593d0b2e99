package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Sends requests at a rate, as far as the service lets us.
func main() {
	context := flag.String("context", "shop>api", "both names, as both ends have them")
	key := flag.String("key", "", "NUMBER SECRET")
	rank := flag.Uint("rank", 15, "place in the order of importance")
	rate := flag.Float64("rate", 50, "requests a second")
	requests := flag.Int("requests", 100, "how many")
	flag.Parse()
	keys := map[byte][]byte{}
	if number, secret, ok := strings.Cut(*key, " "); ok {
		id, _ := strconv.Atoi(number)
		keys[byte(id)] = []byte(secret)
	}
	limit := NewLimit(*context, keys)
	client := &http.Client{Transport: &Transport{Limit: limit, Rank: byte(*rank)}, Timeout: 10 * time.Second}
	sent, refused, failed, begun := 0, 0, 0, time.Now()
	for index := 0; index < *requests; index++ {
		time.Sleep(time.Until(begun.Add(time.Duration(float64(index) / *rate * float64(time.Second)))))
		response, err := client.Get(flag.Arg(0))
		switch {
		case errors.Is(err, ErrRefused):
			refused++
		case err != nil:
			failed++
		default:
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
			sent++
		}
	}
	fmt.Printf("{\"sent\": %d, \"refused\": %d, \"failed\": %d, \"ignored\": %d}\n", sent, refused, failed, limit.Ignored)
}
