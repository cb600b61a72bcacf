// Command kpt contains the commands `pkg` and `fn` of kpt, built from the source of kpt.
//
// The main package of kpt also needs the module of its command `alpha rollouts`, which the module proxy does not serve.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/kptdev/kpt/commands/fn"
	"github.com/kptdev/kpt/commands/pkg"
	"github.com/kptdev/kpt/pkg/printer"
	"github.com/spf13/cobra"
)

const version = "1.0.0-beta.61"

func main() {
	ctx := printer.WithContext(context.Background(), printer.New(os.Stdout, os.Stderr))
	root := &cobra.Command{Use: "kpt", Version: version, SilenceUsage: true}
	root.AddCommand(fn.GetCommand(ctx, "kpt"), pkg.GetCommand(ctx, "kpt"), &cobra.Command{
		Use: "version",
		Run: func(*cobra.Command, []string) { fmt.Println(version) },
	})
	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}
