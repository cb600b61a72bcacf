// Command kyaml-merge merges documents with the three-way merge of kyaml, and measures the CPU time.
//
// It reads {"rounds", "documents": [{"origin", "updated", "local"}]} from stdin as JSON, and writes {"cpuSeconds", "results"}.
// A result is {"text"} or {"error"}. The CPU time is the median of the rounds, and includes reading and writing of YAML.
package main

import (
	"encoding/json"
	"log"
	"os"
	"slices"
	"syscall"

	"sigs.k8s.io/kustomize/kyaml/yaml/merge3"
)

type document struct{ Origin, Updated, Local string }

type result struct {
	Text  string `json:"text"`
	Error string `json:"error"`
}

func main() {
	var work struct {
		Rounds    int
		Documents []document
	}
	if err := json.NewDecoder(os.Stdin).Decode(&work); err != nil {
		log.Fatal(err)
	}
	var seconds []float64
	var results []result
	for range work.Rounds {
		began := cpuSeconds()
		results = mergeAll(work.Documents)
		seconds = append(seconds, cpuSeconds()-began)
	}
	slices.Sort(seconds)
	output := map[string]any{"cpuSeconds": seconds[len(seconds)/2], "results": results}
	if err := json.NewEncoder(os.Stdout).Encode(output); err != nil {
		log.Fatal(err)
	}
}

func mergeAll(documents []document) []result {
	results := make([]result, len(documents))
	for index, sides := range documents {
		text, err := merge3.MergeStrings(sides.Local, sides.Origin, sides.Updated, false)
		results[index].Text = text
		if err != nil {
			results[index].Error = err.Error()
		}
	}
	return results
}

// cpuSeconds returns the user and system time of the process, which includes garbage collection.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
