package main

import (
	"math/rand"
	"sync"
	"sync/atomic"
	"time"
)

const (
	minDelay = time.Second
	maxDelay = 5 * time.Second
	// A rate is held where all is stored within this of the time, and handled within this of the last due time.
	heldWithin = time.Second
)

func randomDelay() time.Duration {
	return minDelay + time.Duration(rand.Int63n(int64(maxDelay-minDelay)))
}

// submitAll submits the jobs from as many goroutines as there are connections, until due says no; the first error ends it.
func submitAll(p *peer, o options, due func() (time.Time, bool)) error {
	var left atomic.Int64
	left.Store(int64(o.jobs))
	var group sync.WaitGroup
	failed := make(chan error, o.connections)
	for range o.connections {
		group.Add(1)
		go func() {
			defer group.Done()
			for left.Add(-1) >= 0 {
				at, more := due()
				if !more {
					return
				}
				if err := p.submit(at); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func drain(p *peer, o options) (map[string]any, error) {
	begun := time.Now()
	// The tasks come due when the last one is in, at a rate that asynq reaches here.
	due := begun.Add(time.Duration(float64(o.jobs)/expectedSubmitPerS*float64(time.Second)) + time.Second)
	if err := submitAll(p, o, func() (time.Time, bool) { return due, true }); err != nil {
		return nil, err
	}
	submitted := time.Since(begun)
	time.Sleep(time.Until(due.Add(500 * time.Millisecond)))
	drainBegun := time.Now()
	if err := p.consume(o.jobs); err != nil {
		return nil, err
	}
	<-p.all
	p.settled()
	return map[string]any{
		"jobs":         o.jobs,
		"submit_per_s": float64(o.jobs) / submitted.Seconds(),
		"drain_per_s":  float64(o.jobs) / time.Since(drainBegun).Seconds(),
	}, nil
}

func life(p *peer, o options) (map[string]any, error) {
	if err := p.consume(o.jobs); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := submitAll(p, o, func() (time.Time, bool) { return time.Now().Add(randomDelay()), true }); err != nil {
		return nil, err
	}
	submitted := time.Since(begun)
	<-p.all
	p.settled()
	return map[string]any{
		"jobs":         o.jobs,
		"submit_per_s": float64(o.jobs) / submitted.Seconds(),
		"life_per_s":   float64(o.jobs) / time.Since(begun).Seconds(),
		"lateness_ms":  p.percentiles(),
	}, nil
}

// An open load: job n should be sent at n / rate. What cannot be sent in time is late, and the rate is not held.
func steady(p *peer, o options) (map[string]any, error) {
	total := o.rate * o.seconds
	if err := p.consume(total); err != nil {
		return nil, err
	}
	begun := time.Now()
	end := begun.Add(time.Duration(o.seconds) * time.Second)
	var next, sent atomic.Int64
	o.jobs = total
	err := submitAll(p, o, func() (time.Time, bool) {
		n := next.Add(1) - 1
		time.Sleep(time.Until(begun.Add(time.Duration(n) * time.Second / time.Duration(o.rate))))
		if time.Now().After(end.Add(heldWithin)) {
			return time.Time{}, false
		}
		sent.Add(1)
		return time.Now().Add(randomDelay()), true
	})
	if err != nil {
		return nil, err
	}
	submitted := time.Since(begun)
	done := false
	select {
	case <-p.all:
		done = true
	case <-time.After(time.Until(end.Add(maxDelay + heldWithin))):
	}
	held := done && submitted < time.Duration(o.seconds)*time.Second+heldWithin
	return map[string]any{
		"jobs": sent.Load(), "rate": o.rate, "held": held, "lateness_ms": p.percentiles(),
	}, nil
}
