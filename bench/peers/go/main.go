// Drives asynq through its own client and prints one JSON object, as load_bench does for the others:
//
//	asynq_peer run --driver asynq --workload drain|life|steady --address HOST:PORT
//	  [--jobs N] [--batch N] [--connections N] [--rate N] [--seconds N] [--time-limit S]
//
// asynq has no call for many jobs: --connections is how many goroutines submit at once, and --batch is ignored.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"syscall"
	"time"
)

type options struct {
	driver, workload, address                                 string
	jobs, batch, connections, rate, seconds, timeLimitSeconds int
}

func parse(arguments []string) (options, error) {
	var o options
	if len(arguments) == 0 || arguments[0] != "run" {
		return o, fmt.Errorf("the first word must be run")
	}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.StringVar(&o.driver, "driver", "asynq", "asynq")
	flags.StringVar(&o.workload, "workload", "", "drain, life or steady")
	flags.StringVar(&o.address, "address", "", "HOST:PORT of redis-server")
	flags.IntVar(&o.jobs, "jobs", 20000, "")
	flags.IntVar(&o.batch, "batch", 1, "ignored")
	flags.IntVar(&o.connections, "connections", 50, "")
	flags.IntVar(&o.rate, "rate", 5000, "")
	flags.IntVar(&o.seconds, "seconds", 30, "")
	flags.IntVar(&o.timeLimitSeconds, "time-limit", 300, "")
	if err := flags.Parse(arguments[1:]); err != nil {
		return o, err
	}
	if o.address == "" || o.jobs <= 0 || o.connections <= 0 || o.rate <= 0 || o.seconds <= 0 {
		return o, fmt.Errorf("--address is needed, and every number must be above 0")
	}
	return o, nil
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

func run() error {
	o, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	time.AfterFunc(time.Duration(o.timeLimitSeconds)*time.Second, func() {
		fmt.Fprintf(os.Stderr, "the time limit of %d s is over\n", o.timeLimitSeconds)
		os.Exit(1)
	})
	workloads := map[string]func(*peer, options) (map[string]any, error){"drain": drain, "life": life, "steady": steady}
	workload, known := workloads[o.workload]
	if !known {
		return fmt.Errorf("--workload must be drain, life or steady")
	}
	p := connect(o)
	cpu, begun := cpuSeconds(), time.Now()
	figures, err := workload(p, o)
	if err != nil {
		return err
	}
	seconds := time.Since(begun).Seconds()
	figures["driver"], figures["workload"], figures["mode"] = o.driver, o.workload, "single"
	figures["connections"], figures["seconds"], figures["errors"] = o.connections, seconds, 0
	figures["load_cpu_cores"] = (cpuSeconds() - cpu) / seconds
	return json.NewEncoder(os.Stdout).Encode(figures)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
