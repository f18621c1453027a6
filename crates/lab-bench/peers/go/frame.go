package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	_ "unsafe" // for linkname
)

// How long a run may go without progress, or take to end once stop is set.
const patience = 5 * time.Second

// How many times stop posts each semaphore of churn.
const lastPosts = 10_000

// plan is what to run, from the flags.
type plan struct {
	bench             string
	processors        int
	fibres            int // t; for cycle rings
	secs              float64
	iterations        uint64 // per fibre; for transfer in all
	ring              int
	semaphores, spots int
	words, touches    int
	share, parking    bool
	seed              uint64
}

func parse(args []string) (*plan, error) {
	p := &plan{}
	set := flag.NewFlagSet("peer", flag.ContinueOnError)
	set.StringVar(&p.bench, "bench", "", "cycle, yield, churn, locality or transfer")
	set.IntVar(&p.processors, "processors", 1, "p")
	set.IntVar(&p.fibres, "fibres", 0, "t")
	set.Float64Var(&p.secs, "secs", 0, "duration")
	set.Uint64Var(&p.iterations, "iterations", 0, "instead of a duration")
	set.IntVar(&p.ring, "ring", 5, "r")
	set.IntVar(&p.semaphores, "semaphores", 0, "s")
	set.IntVar(&p.spots, "spots", 0, "n")
	set.IntVar(&p.words, "words", 2, "w")
	set.IntVar(&p.touches, "touches", 2, "c")
	share := set.String("share", "off", "on or off")
	flavour := set.String("flavour", "park", "park or yield")
	set.Uint64Var(&p.seed, "seed", 1, "of all random numbers")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	p.share, p.parking = *share == "on", *flavour == "park"
	return p, p.complete()
}

// complete fills in what was left out and refuses what cannot run.
func (p *plan) complete() error {
	timed, counted := p.secs > 0, p.iterations > 0
	if p.processors < 1 || p.fibres < 1 {
		return errors.New("--processors and --fibres have to be at least 1")
	}
	if timed == counted {
		return errors.New("give --secs or --iterations, above 0, and not both")
	}
	switch p.bench {
	case "cycle":
		if p.ring < 1 {
			return errors.New("a ring has at least 1 fibre")
		}
	case "yield":
	case "churn":
		if p.semaphores == 0 {
			p.semaphores = max(1, p.fibres/2)
		}
		if counted {
			return errors.New("churn takes --secs")
		}
		if p.fibres < p.semaphores+p.processors {
			return fmt.Errorf("churn needs %d + %d fibres or more, and has %d",
				p.semaphores, p.processors, p.fibres)
		}
	case "locality":
		if p.spots == 0 {
			p.spots = p.fibres - p.processors
		}
		if counted {
			return errors.New("locality takes --secs")
		}
		if p.spots < 1 || p.spots >= p.fibres || p.words < 1 {
			return errors.New("locality needs words, and fewer spots than fibres")
		}
	case "transfer":
		if p.processors < 2 || p.fibres < 2 {
			return errors.New("transfer needs 2 processors and 2 fibres or more")
		}
		if timed {
			return errors.New("transfer takes --iterations")
		}
	default:
		return fmt.Errorf("there is no benchmark %q", p.bench)
	}
	return nil
}

// crew is how many fibres run.
func (p *plan) crew() int {
	if p.bench == "cycle" {
		return p.ring * p.fibres
	}
	return p.fibres
}

// tally is what one fibre did. It alone writes here; the main goroutine looks now and then
// for progress (words do not tear), and reads the final ones after left is 0. Atomic stores
// would be exchanges, which cost more than a goroutine's yield should pay.
type tally struct {
	operations     uint64
	migrations     uint64
	dataMigrations uint64
	rechecks       uint64
	_              [96]byte
}

type alone[T any] struct {
	v T
	_ [120]byte
}

// run is one run: when it began and ended, who still runs, what was done.
type run struct {
	plan        *plan
	limit       uint64
	gate        chan struct{}
	tallies     []tally
	byProcessor []tally
	began       time.Time
	cpuBegan    float64
	stamped     atomic.Bool
	wall, cpu   float64
	_           [128]byte
	stop        alone[atomic.Bool]
	left        alone[atomic.Int64] // fibres that run, and one more until the end is noted
	leads       alone[atomic.Uint64]
}

func newRun(p *plan) *run {
	r := &run{
		plan:        p,
		limit:       p.iterations,
		gate:        make(chan struct{}),
		tallies:     make([]tally, p.crew()),
		byProcessor: make([]tally, p.processors),
	}
	if r.limit == 0 {
		r.limit = ^uint64(0)
	}
	r.left.v.Store(int64(p.crew() + 1))
	return r
}

// spawn starts the fibres, which wait until all of them are there.
func (r *run) spawn(body func(fibre int, tally *tally)) {
	for fibre := range r.tallies {
		fibre := fibre
		go func() {
			<-r.gate
			body(fibre, &r.tallies[fibre])
			if r.left.v.Add(-1) == 1 {
				r.stamp()
				r.left.v.Add(-1)
			}
		}()
	}
}

// counted counts an operation; whether it was this fibre's last.
func (r *run) counted(t *tally) bool {
	t.operations++
	return r.stop.v.Load() || t.operations >= r.limit
}

// stamp notes when the run ended; only the first note counts.
func (r *run) stamp() {
	if r.stamped.CompareAndSwap(false, true) {
		r.wall = time.Since(r.began).Seconds()
		r.cpu = cpuSeconds() - r.cpuBegan
	}
}

// watch lets the fibres go, looks every 100 ms (a run by iterations, every 5), sets stop,
// lets end wake who waits, waits for all to leave, and reports.
func (r *run) watch(end func()) {
	timed := r.plan.secs > 0
	look := 5 * time.Millisecond
	if timed {
		look = 100 * time.Millisecond
	}
	until := time.Duration(r.plan.secs * float64(time.Second))
	r.began, r.cpuBegan = time.Now(), cpuSeconds()
	close(r.gate)
	seen, since := ^uint64(0), time.Now()
	for r.left.v.Load() > 0 {
		if timed {
			time.Sleep(min(look, until-time.Since(r.began)))
			if time.Since(r.began) >= until {
				break
			}
		} else {
			time.Sleep(look)
		}
		if done := r.done(); done != seen {
			seen, since = done, time.Now()
		} else if time.Since(since) > patience && r.plan.bench == "transfer" {
			// A result: some fibre never ran. The leader spins, so this cannot be stopped,
			// unless it is through, and only the end did not reach all.
			r.stamp()
			r.report(r.leads.v.Load() > r.limit)
			os.Exit(0)
		} else if time.Since(since) > patience {
			r.giveUp("made no progress")
		}
	}
	if timed {
		r.stamp()
	}
	r.stop.v.Store(true)
	end()
	since = time.Now()
	for r.left.v.Load() > 0 {
		time.Sleep(time.Millisecond)
		if time.Since(since) > patience {
			r.giveUp("did not end once it was told to stop")
		}
	}
	r.report(true)
}

func (r *run) done() uint64 {
	sum := r.leads.v.Load()
	for i := range r.tallies {
		sum += r.tallies[i].operations
	}
	return sum
}

func (r *run) giveUp(what string) {
	fmt.Fprintf(os.Stderr, "%s %s within %v: %d fibres are left\n",
		r.plan.bench, what, patience, r.left.v.Load()-1)
	os.Exit(3)
}

func (r *run) report(completed bool) {
	column := func(tallies []tally, of func(*tally) uint64) (all []uint64, sum uint64) {
		for i := range tallies {
			all = append(all, of(&tallies[i]))
			sum += of(&tallies[i])
		}
		return
	}
	operations := func(t *tally) uint64 { return t.operations }
	perFibre, sum := column(r.tallies, operations)
	line := map[string]any{
		"peer":       "go",
		"version":    strings.TrimPrefix(runtime.Version(), "go"),
		"bench":      r.plan.bench,
		"processors": r.plan.processors,
		"fibres":     r.plan.crew(),
		"operations": sum,
		"wall_s":     r.wall,
		"cpu_s":      r.cpu,
		"completed":  completed,
		"per_fibre":  perFibre,
		"note":       notes[r.plan.bench],
	}
	switch r.plan.bench {
	case "locality":
		line["per_processor"], _ = column(r.byProcessor, operations)
		_, line["fibre_migrations"] = column(r.tallies, func(t *tally) uint64 { return t.migrations })
		_, line["data_migrations"] = column(r.tallies, func(t *tally) uint64 { return t.dataMigrations })
	case "transfer":
		_, line["rechecks"] = column(r.tallies, func(t *tally) uint64 { return t.rechecks })
	}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) * 1e-9
}

// random is Marsaglia's xorshift64; the same in all programs.
type random uint64

// newRandom is that of one fibre: splitmix64 of seed and number, so that neighbours differ.
func newRandom(seed uint64, fibre int) random {
	z := (seed + uint64(fibre) + 1) * 0x9E3779B97F4A7C15
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return random((z ^ (z >> 31)) | 1)
}

func (r *random) below(n int) int {
	x := *r
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = x
	return int(uint64(x) % uint64(n))
}

// procPin forbids preemption and returns the number of the P, Go's processor: a few
// instructions, where asking the system for the thread would be a call of it.
//
//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
