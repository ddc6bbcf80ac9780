package main

import (
	"bytes"
	"context"
	"math"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

const (
	payloadBytes       = 128
	expectedSubmitPerS = 15000
	workers            = 50
	// The defaults are 5 s and 1 s: far too late for anyone who measures lateness.
	checkInterval = 100 * time.Millisecond
)

// peer is one asynq client and, once consume was called, one asynq server. The due time stands at the front of the payload.
type peer struct {
	client    *asynq.Client
	inspector *asynq.Inspector
	redis     asynq.RedisClientOpt
	all       chan struct{} // closed when as many as expected were handled

	mutex      sync.Mutex
	expected   int
	latenessMs []float64
}

func connect(o options) *peer {
	redis := asynq.RedisClientOpt{Addr: o.address, PoolSize: o.connections + workers}
	return &peer{
		client: asynq.NewClient(redis), inspector: asynq.NewInspector(redis), redis: redis, all: make(chan struct{}),
	}
}

func (p *peer) submit(due time.Time) error {
	payload := bytes.Repeat([]byte{' '}, payloadBytes)
	copy(payload, strconv.FormatInt(due.UnixNano(), 10))
	_, err := p.client.Enqueue(asynq.NewTask("bench", payload), asynq.ProcessAt(due))
	return err
}

func (p *peer) handle(_ context.Context, task *asynq.Task) error {
	due, err := strconv.ParseInt(string(bytes.TrimSpace(task.Payload())), 10, 64)
	if err != nil {
		return err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.latenessMs = append(p.latenessMs, float64(time.Now().UnixNano()-due)/1e6)
	if len(p.latenessMs) == p.expected {
		close(p.all)
	}
	return nil
}

func (p *peer) consume(expected int) error {
	p.expected = expected
	server := asynq.NewServer(p.redis, asynq.Config{
		Concurrency: workers, TaskCheckInterval: checkInterval, DelayedTaskCheckInterval: checkInterval,
		LogLevel: asynq.FatalLevel,
	})
	return server.Start(asynq.HandlerFunc(p.handle))
}

// settled waits until no task is active: the handler returns before its task is marked done.
func (p *peer) settled() {
	for {
		info, err := p.inspector.GetQueueInfo("default")
		if err != nil || info.Active == 0 {
			return
		}
	}
}

func (p *peer) percentiles() map[string]any {
	p.mutex.Lock()
	values := append([]float64(nil), p.latenessMs...)
	p.mutex.Unlock()
	sort.Float64s(values)
	at := func(share float64) any {
		if len(values) == 0 {
			return nil
		}
		return values[int(math.Min(float64(len(values)-1), float64(len(values))*share))]
	}
	early := sort.SearchFloat64s(values, 0)
	return map[string]any{
		"p50": at(0.5), "p99": at(0.99), "p999": at(0.999), "max": at(1), "count": len(values), "early": early,
	}
}
