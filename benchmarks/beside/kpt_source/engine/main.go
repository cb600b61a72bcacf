// Command kpt-engine renders and updates packages with the libraries of kpt that Porch links, and measures the CPU time.
//
// Like Porch, it renders in an in-memory file system with built-in functions, and updates in folders on disk.
// It reads {"rounds", "renders": [FILES], "updates": [{"origin", "updated", "local": FILES}]} from stdin as JSON.
// FILES maps paths to texts. It writes {"renders", "updates": {"cpuSeconds", "results": [FILES]}}. The CPU times are
// medians of the rounds.
package main

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/kptdev/kpt/pkg/fn"
	"github.com/kptdev/kpt/pkg/lib/kptops"
	"github.com/kptdev/kpt/pkg/lib/runneroptions"
	"github.com/kptdev/kpt/pkg/lib/update"
	"github.com/kptdev/kpt/pkg/lib/update/updatetypes"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

type files map[string]string

type sides struct{ Origin, Updated, Local files }

type measurement struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	Results    []files `json:"results"`
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	var work struct {
		Rounds  int
		Renders []files
		Updates []sides
	}
	must(json.NewDecoder(os.Stdin).Decode(&work))
	output := map[string]measurement{
		"renders": measure(work.Rounds, work.Renders, render),
		"updates": measure(work.Rounds, work.Updates, updatePackage),
	}
	must(json.NewEncoder(os.Stdout).Encode(output))
}

// measure processes all items in each round. The function returns the CPU time of one item and its result.
func measure[T any](rounds int, items []T, process func(T) (float64, files)) measurement {
	totals := make([]float64, rounds)
	results := make([]files, len(items))
	for round := range rounds {
		for index, item := range items {
			seconds, result := process(item)
			totals[round] += seconds
			results[index] = result
		}
	}
	slices.Sort(totals)
	return measurement{totals[rounds/2], results}
}

func render(pkg files) (float64, files) {
	system := filesys.MakeFsInMemory()
	for path, text := range pkg {
		must(system.WriteFile(filepath.Join("/pkg", path), []byte(text)))
	}
	options := runneroptions.RunnerOptions{}
	options.InitDefaults(runneroptions.GHCRImagePrefix)
	began := cpuSeconds()
	_, err := kptops.NewRenderer(options).Render(context.Background(), system,
		fn.RenderOptions{PkgPath: "/pkg", Runtime: kptops.NewSimpleFunctionRuntime()})
	must(err)
	seconds := cpuSeconds() - began
	result := files{}
	must(system.Walk("/pkg", func(path string, info fs.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := system.ReadFile(path)
		result[relative("/pkg", path)] = string(text)
		return err
	}))
	return seconds, result
}

func updatePackage(pkg sides) (float64, files) {
	folder, err := os.MkdirTemp("", "kpt-engine-")
	must(err)
	defer os.RemoveAll(folder)
	options := updatetypes.Options{
		RelPackagePath: ".",
		LocalPath:      write(filepath.Join(folder, "local"), pkg.Local),
		OriginPath:     write(filepath.Join(folder, "origin"), pkg.Origin),
		UpdatedPath:    write(filepath.Join(folder, "updated"), pkg.Updated),
		IsRoot:         true,
	}
	began := cpuSeconds()
	must(update.GetUpdater("resource-merge").Update(options))
	seconds := cpuSeconds() - began
	result := files{}
	must(filepath.WalkDir(options.LocalPath, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		result[relative(options.LocalPath, path)] = string(text)
		return err
	}))
	return seconds, result
}

func write(folder string, pkg files) string {
	for path, text := range pkg {
		file := filepath.Join(folder, path)
		must(os.MkdirAll(filepath.Dir(file), 0o755))
		must(os.WriteFile(file, []byte(text), 0o644))
	}
	return folder
}

func relative(folder, path string) string {
	name, err := filepath.Rel(folder, path)
	must(err)
	return filepath.ToSlash(name)
}

// cpuSeconds returns the user and system time of the process, which includes garbage collection.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
