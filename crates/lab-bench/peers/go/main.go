// The five benchmarks of fibres in Go: goroutines.
//
// Equivalent: a channel of capacity 1 with a send that gives up when it is full is the
// one-seat binary semaphore. A channel of empty values with room for every post there can be
// is a counting semaphore: receivers queue first in, first out, and a send hands over to the
// first of them (churn is often written with capacity 1, which loses posts and seldom
// blocks). runtime.Gosched. The number of the processor is that of Go's P, found without the
// system call by which locality is often written.
//
// Not the same: Gosched puts a goroutine at the end of one queue for all processors; a
// goroutine that has run for 10 ms is preempted; Go has no instruction to pause while
// spinning.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
)

// What the reader of a figure should know.
var notes = map[string]string{
	"yield": "runtime.Gosched goes through the queue that all processors share",
}

func main() {
	p, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	runtime.GOMAXPROCS(p.processors)
	bench := map[string]func(*run){
		"cycle": cycle, "yield": yield, "churn": churn, "locality": locality, "transfer": transfer,
	}[p.bench]
	bench(newRun(p))
}

// seat is the one-seat binary semaphore.
type seat struct {
	c chan struct{}
	_ [120]byte
}

func (s *seat) wait() { <-s.c }

func (s *seat) post() {
	select {
	case s.c <- struct{}{}:
	default:
	}
}

func newSeats(n int) []seat {
	seats := make([]seat, n)
	for i := range seats {
		seats[i].c = make(chan struct{}, 1)
	}
	return seats
}

func cycle(r *run) {
	seats := newSeats(r.plan.crew())
	rings := r.plan.fibres
	r.spawn(func(fibre int, tally *tally) {
		mine, next := &seats[fibre], &seats[(fibre+rings)%len(seats)]
		for {
			mine.wait()
			next.post()
			if r.counted(tally) {
				return
			}
		}
	})
	for i := range seats[:rings] {
		seats[i].post()
	}
	r.watch(func() {
		for i := range seats {
			seats[i].post()
		}
	})
}

func yield(r *run) {
	r.spawn(func(_ int, tally *tally) {
		for {
			runtime.Gosched()
			if r.counted(tally) {
				return
			}
		}
	})
	r.watch(func() {})
}

func churn(r *run) {
	semaphores := make([]seat, r.plan.semaphores)
	for i := range semaphores {
		// Each fibre has at most one post that nobody has taken; empty values need no room.
		semaphores[i].c = make(chan struct{}, r.plan.fibres+lastPosts)
	}
	r.spawn(func(fibre int, tally *tally) {
		random := newRandom(r.plan.seed, fibre)
		first := fibre < len(semaphores)
		for {
			s := &semaphores[random.below(len(semaphores))]
			if !first {
				s.c <- struct{}{}
			}
			first = false
			<-s.c
			if r.counted(tally) {
				return
			}
		}
	})
	r.watch(func() {
		for i := range semaphores {
			for n := 0; n < lastPosts; n++ {
				semaphores[i].c <- struct{}{}
			}
		}
	})
}

// data is an array of locality: the words, and the processor that touched them last. With
// sharing, several fibres may have one array, and losing an increment is part of the
// benchmark: plain words, for an atomic store would be an exchange.
type data struct {
	words []uint64
	last  int
	_     [96]byte
}

func (d *data) touch(touches int, random *random) {
	for i := 0; i < touches; i++ {
		d.words[random.below(len(d.words))]++
	}
}

// context is where a fibre of locality sits, and what it takes when it goes on.
type context struct {
	seat
	data *data
	_    [120]byte
}

func locality(r *run) {
	p := r.plan
	spots := make([]alone[atomic.Pointer[context]], p.spots)
	contexts := make([]context, p.fibres)
	for i := range contexts {
		contexts[i].c = make(chan struct{}, 1)
		contexts[i].data = &data{words: make([]uint64, p.words), last: -1}
	}
	closed := &context{}
	r.spawn(func(fibre int, tally *tally) {
		random := newRandom(p.seed, fibre)
		mine := &contexts[fibre]
		before := procPin()
		procUnpin()
		for {
			d := mine.data
			d.touch(p.touches, &random)
			spot := &spots[random.below(len(spots))].v
			who := spot.Load()
			for who != closed && !spot.CompareAndSwap(who, mine) {
				who = spot.Load()
			}
			if who == closed {
				return
			}
			if who != nil {
				if p.share {
					who.data = d
				}
				who.post()
			}
			mine.wait()
			if r.stop.v.Load() {
				return
			}
			d = mine.data
			now := procPin()
			r.byProcessor[now].operations++
			procUnpin()
			if now != before {
				tally.migrations++
				before = now
			}
			if d.last != now {
				if d.last >= 0 {
					tally.dataMigrations++
				}
				d.last = now
			}
			r.counted(tally)
		}
	})
	r.watch(func() {
		for i := range spots {
			if who := spots[i].v.Swap(closed); who != nil {
				who.post()
			}
		}
	})
}

func transfer(r *run) {
	p := r.plan
	seats := newSeats(p.fibres)
	indices := make([]alone[atomic.Uint64], p.fibres)
	var leader alone[atomic.Int64]
	first := newRandom(p.seed, p.fibres)
	leader.v.Store(int64(first.below(p.fibres)))
	r.spawn(func(fibre int, tally *tally) {
		random := newRandom(p.seed, fibre)
		mine := &indices[fibre].v
		wakeOthers := func() {
			for other := range seats {
				if other != fibre {
					seats[other].post()
				}
			}
		}
		for {
			now := leader.v.Load()
			if now < 0 {
				return
			}
			if now == int64(fibre) {
				index := r.leads.v.Load() + 1
				mine.Store(index)
				r.leads.v.Store(index)
				if index > r.limit {
					r.stamp()
					leader.v.Store(-1)
					wakeOthers()
					return
				}
				for other := range indices {
					for indices[other].v.Load() != index {
					}
				}
				tally.operations++
				leader.v.Store(int64(random.below(p.fibres)))
				if p.parking {
					wakeOthers()
				}
				continue
			}
			runtime.Gosched()
			index := mine.Load()
			if r.leads.v.Load() == index {
				tally.rechecks++
				continue
			}
			mine.Store(index + 1)
			if p.parking {
				seats[fibre].wait()
			} else {
				runtime.Gosched()
			}
		}
	})
	r.watch(func() {})
}
