// Command cel-go evaluates CEL expressions with cel-go, and measures the time of one evaluation.
//
// Standard input contains a JSON object: "milliseconds", the time of one measurement, "rounds", the number of
// measurements, and "cases", a list of objects with "expression" and "variables". The command writes a JSON list with the
// result and the shortest CPU time in nanoseconds of each case.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"syscall"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
	"google.golang.org/protobuf/types/known/structpb"
)

type task struct {
	Milliseconds int64
	Rounds       int
	Cases        []struct {
		Expression string
		Variables  map[string]any
	}
}

func main() {
	var work task
	decoder := json.NewDecoder(os.Stdin)
	decoder.UseNumber()
	check(decoder.Decode(&work))
	outputs := []map[string]any{}
	for _, one := range work.Cases {
		variables := convertNumbers(one.Variables).(map[string]any)
		program := compile(one.Expression, variables)
		result, _, err := program.Eval(variables)
		check(err)
		shortest := measure(program, variables, work.Milliseconds)
		for round := 1; round < work.Rounds; round++ {
			shortest = min(shortest, measure(program, variables, work.Milliseconds))
		}
		outputs = append(outputs, map[string]any{"result": convertToData(result), "nanoseconds": shortest})
	}
	check(json.NewEncoder(os.Stdout).Encode(outputs))
}

// convertNumbers replaces the numbers of JSON by int64 or float64, because JSON does not distinguish them.
func convertNumbers(value any) any {
	switch typed := value.(type) {
	case json.Number:
		if integer, err := typed.Int64(); err == nil {
			return integer
		}
		float, err := typed.Float64()
		check(err)
		return float
	case []any:
		for index := range typed {
			typed[index] = convertNumbers(typed[index])
		}
	case map[string]any:
		for key := range typed {
			typed[key] = convertNumbers(typed[key])
		}
	}
	return value
}

func compile(expression string, variables map[string]any) cel.Program {
	options := []cel.EnvOption{cel.OptionalTypes(), ext.Strings(), ext.Lists(), ext.TwoVarComprehensions()}
	for name := range variables {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	environment, err := cel.NewEnv(options...)
	check(err)
	tree, issues := environment.Compile(expression)
	check(issues.Err())
	program, err := environment.Program(tree, cel.EvalOptions(cel.OptOptimize))
	check(err)
	return program
}

// measure returns the CPU time of one evaluation in nanoseconds, including the garbage collection.
func measure(program cel.Program, variables map[string]any, milliseconds int64) float64 {
	count, start := 0, readCPUTime()
	for readCPUTime()-start < milliseconds*1_000_000 {
		for range 1000 {
			if _, _, err := program.Eval(variables); err != nil {
				check(err)
			}
		}
		count += 1000
	}
	return float64(readCPUTime()-start) / float64(count)
}

func readCPUTime() int64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func convertToData(value ref.Val) any {
	native, err := value.ConvertToNative(reflect.TypeOf(&structpb.Value{}))
	check(err)
	return native.(*structpb.Value).AsInterface()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
