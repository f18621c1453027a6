// What users of gomemcache do: PORT text.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// A wait that takes so long is a hang.
const hang = 60 * time.Second

var done int

func fail(format string, words ...any) {
	fmt.Printf("gomemcache: "+format+"\n", words...)
	os.Exit(1)
}

func equal(found, wanted any, what string) {
	if !reflect.DeepEqual(found, wanted) {
		fail("%s: %.200q instead of %.200q", what, fmt.Sprint(found), fmt.Sprint(wanted))
	}
	done++
}

// is demands an error, or none if wanted is nil.
func is(found, wanted error, what string) {
	if !errors.Is(found, wanted) {
		fail("%s: the error %v instead of %v", what, found, wanted)
	}
	done++
}

func value(client *memcache.Client, key string) string {
	item, err := client.Get(key)
	if err == memcache.ErrCacheMiss {
		return "no item"
	}
	is(err, nil, "get of "+key)
	return string(item.Value)
}

func item(key, value string) *memcache.Item {
	return &memcache.Item{Key: key, Value: []byte(value)}
}

func main() {
	client := memcache.New("127.0.0.1:" + os.Args[1])
	client.Timeout = hang
	client.MaxIdleConns = 16
	is(client.Ping(), nil, "ping")
	is(client.FlushAll(), nil, "flush_all")
	everyCall(client)
	values(client)
	threads(client)
	is(client.DeleteAll(), nil, "delete of all")
	equal(value(client, "a"), "no item", "get after delete of all")
	is(client.Close(), nil, "close")
	fmt.Printf("gomemcache: %d checks passed\n", done)
}

func everyCall(client *memcache.Client) {
	_, err := client.Get("a")
	is(err, memcache.ErrCacheMiss, "get of nothing")
	is(client.Set(&memcache.Item{Key: "a", Value: []byte("1"), Flags: 4294967295}), nil, "set")
	found, err := client.Get("a")
	is(err, nil, "get")
	equal(string(found.Value), "1", "get")
	equal(found.Flags, uint32(4294967295), "flags")
	is(client.Add(item("a", "2")), memcache.ErrNotStored, "add of a key that is there")
	is(client.Add(item("b", "2")), nil, "add")
	is(client.Replace(item("c", "3")), memcache.ErrNotStored, "replace of nothing")
	is(client.Replace(item("b", "3")), nil, "replace")
	is(client.Append(item("b", "4")), nil, "append")
	is(client.Prepend(item("b", "2")), nil, "prepend")
	is(client.Append(item("c", "3")), memcache.ErrNotStored, "append to nothing")
	equal(value(client, "b"), "234", "get of what was joined")

	found.Value = []byte("2")
	is(client.CompareAndSwap(found), nil, "cas")
	is(client.CompareAndSwap(found), memcache.ErrCASConflict, "cas with an old number")
	is(client.Delete("a"), nil, "delete")
	is(client.CompareAndSwap(found), memcache.ErrCacheMiss, "cas of nothing")
	is(client.Delete("a"), memcache.ErrCacheMiss, "delete of nothing")

	_, err = client.Increment("nothing", 1)
	is(err, memcache.ErrCacheMiss, "incr of nothing")
	is(client.Set(item("n", "9")), nil, "set of a number")
	number, err := client.Increment("n", 1)
	is(err, nil, "incr")
	equal(number, uint64(10), "incr")
	number, err = client.Decrement("n", 100)
	is(err, nil, "decr")
	equal(number, uint64(0), "decr below zero")
	_, err = client.Increment("b", 1)
	is(err, nil, "incr of a joined number")
	is(client.Set(item("word", "x")), nil, "set of a word")
	if _, err = client.Increment("word", 1); err == nil || err == memcache.ErrCacheMiss {
		fail("incr of a word: the error %v", err)
	}

	is(client.Touch("n", 1000), nil, "touch")
	is(client.Touch("nothing", 1000), memcache.ErrCacheMiss, "touch of nothing")
	found, err = client.GetAndTouch("n", 1000)
	is(err, nil, "gat")
	equal(strings.TrimSpace(string(found.Value)), "0", "gat")
	_, err = client.GetAndTouch("nothing", 1000)
	is(err, memcache.ErrCacheMiss, "gat of nothing")

	is(client.Set(&memcache.Item{Key: "soon", Value: []byte("x"), Expiration: 1}), nil, "set")
	for end := time.Now().Add(hang); value(client, "soon") != "no item"; {
		if time.Now().After(end) {
			fail("an item does not expire after a second")
		}
		time.Sleep(20 * time.Millisecond)
	}
	is(client.Set(item(strings.Repeat("k", 251), "x")), memcache.ErrMalformedKey, "key too long")
}

func values(client *memcache.Client) {
	keys := []string{"nothing"}
	wanted := map[string]string{}
	for n := 0; n < 500; n++ {
		key, value := fmt.Sprintf("schlüssel%d", n), strings.Repeat("\x00\r\n\xff", n)
		is(client.Set(item(key, value)), nil, "set")
		keys, wanted[key] = append(keys, key), value
	}
	items, err := client.GetMulti(keys)
	is(err, nil, "get of many")
	found := map[string]string{}
	for key, item := range items {
		found[key] = string(item.Value)
	}
	equal(found, wanted, "get of many")
	large := bytes.Repeat([]byte("large"), 200_000)
	is(client.Set(&memcache.Item{Key: "large", Value: large}), nil, "set of a large value")
	equal(value(client, "large") == string(large), true, "a large value")
	is(client.Set(&memcache.Item{Key: "empty", Value: nil}), nil, "set of an empty value")
	equal(value(client, "empty"), "", "an empty value")
	big := bytes.Repeat([]byte("x"), 1_100_000)
	if client.Set(&memcache.Item{Key: "large", Value: big}) == nil {
		fail("an item that is too large is stored")
	}
	equal(value(client, "large"), "no item", "get of what was too large")
}

// threads counts on many connections, by incr and by cas.
func threads(client *memcache.Client) {
	is(client.Set(item("sum", "0")), nil, "set")
	is(client.Set(item("cas", "0")), nil, "set")
	var all sync.WaitGroup
	problems := make(chan error, 16)
	for thread := 0; thread < 16; thread++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := 0; n < 50; n++ {
				if _, err := client.Increment("sum", 1); err != nil {
					problems <- err
					return
				}
				for {
					found, err := client.Get("cas")
					if err != nil {
						problems <- err
						return
					}
					var number int
					fmt.Sscan(string(found.Value), &number)
					found.Value = []byte(fmt.Sprint(number + 1))
					if err = client.CompareAndSwap(found); err == nil {
						break
					} else if err != memcache.ErrCASConflict {
						problems <- err
						return
					}
				}
			}
		}()
	}
	all.Wait()
	close(problems)
	for err := range problems {
		fail("on many connections: %v", err)
	}
	equal(value(client, "sum"), "800", "a sum by incr")
	equal(value(client, "cas"), "800", "a sum by cas")
}
