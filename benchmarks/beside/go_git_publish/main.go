// Command go-git-publish changes one file on each branch of a bare repository with go-git, and pushes all branches.
//
// Arguments: the repository, the remote, the path of the file, its new content, and "together" or "each" for one push
// or one push per branch. It writes {"cpuSeconds"} as JSON, which includes the processes of git that go-git starts for a
// remote on the same machine.
package main

import (
	"encoding/json"
	"log"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

var author = object.Signature{Name: "benchmark", Email: "benchmark@localhost", When: time.Unix(1_700_000_000, 0).UTC()}

func main() {
	repository, err := git.PlainOpen(os.Args[1])
	must(err)
	began := cpuSeconds()
	blob := store(repository, func(target plumbing.EncodedObject) error {
		target.SetType(plumbing.BlobObject)
		writer, err := target.Writer()
		must(err)
		_, err = writer.Write([]byte(os.Args[4]))
		must(err)
		return writer.Close()
	})
	remote := git.NewRemote(repository.Storer, &config.RemoteConfig{Name: "origin", URLs: []string{os.Args[2]}})
	branches, err := repository.Branches()
	must(err)
	must(branches.ForEach(func(branch *plumbing.Reference) error {
		parent, err := repository.CommitObject(branch.Hash())
		must(err)
		tree, err := parent.Tree()
		must(err)
		commit := object.Commit{
			Author: author, Committer: author, Message: "update\n", ParentHashes: []plumbing.Hash{parent.Hash},
			TreeHash: replaceFile(repository, tree, strings.Split(os.Args[3], "/"), blob),
		}
		must(repository.Storer.SetReference(plumbing.NewHashReference(branch.Name(), store(repository, commit.Encode))))
		if os.Args[5] == "each" {
			push(remote, branch.Name().String())
		}
		return nil
	}))
	if os.Args[5] == "together" {
		push(remote, "refs/heads/*")
	}
	must(json.NewEncoder(os.Stdout).Encode(map[string]float64{"cpuSeconds": cpuSeconds() - began}))
}

func push(remote *git.Remote, refs string) {
	must(remote.Push(&git.PushOptions{RefSpecs: []config.RefSpec{config.RefSpec(refs + ":" + refs)}}))
}

// replaceFile writes the trees on the path to the file with the new content, and returns the root.
func replaceFile(repository *git.Repository, tree *object.Tree, steps []string, blob plumbing.Hash) plumbing.Hash {
	entry := object.TreeEntry{Name: steps[0], Mode: filemode.Regular, Hash: blob}
	if len(steps) > 1 {
		child, err := tree.Tree(steps[0])
		must(err)
		entry = object.TreeEntry{
			Name: steps[0], Mode: filemode.Dir, Hash: replaceFile(repository, child, steps[1:], blob),
		}
	}
	changed := object.Tree{}
	for _, existing := range tree.Entries {
		if existing.Name == entry.Name {
			existing = entry
		}
		changed.Entries = append(changed.Entries, existing)
	}
	return store(repository, changed.Encode)
}

func store(repository *git.Repository, encode func(plumbing.EncodedObject) error) plumbing.Hash {
	target := repository.Storer.NewEncodedObject()
	must(encode(target))
	id, err := repository.Storer.SetEncodedObject(target)
	must(err)
	return id
}

func cpuSeconds() float64 {
	total := 0.0
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		must(syscall.Getrusage(who, &usage))
		total += float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
	}
	return total
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
