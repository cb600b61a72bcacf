// Command set-labels is a function for kpt that sets labels, as the catalog's set-labels does, but without a container.
//
// The data of its config are the labels; they go into metadata, selectors and templates, by kustomize's own filter.
// Objects for local use stay as they are.
package main

import (
	"os"

	"sigs.k8s.io/kustomize/api/filters/labels"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/fn/framework/command"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const local = "config.kubernetes.io/local-config"

type config struct {
	Data map[string]string `yaml:"data"`
}

func fields() types.FsSlice {
	found := types.FsSlice{{Path: "metadata/labels", CreateIfNotPresent: true}}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"} {
		apps := resid.Gvk{Group: "apps", Kind: kind}
		found = append(found,
			types.FieldSpec{Gvk: apps, Path: "spec/selector/matchLabels", CreateIfNotPresent: true},
			types.FieldSpec{Gvk: apps, Path: "spec/template/metadata/labels", CreateIfNotPresent: true})
	}
	return append(found,
		types.FieldSpec{Gvk: resid.Gvk{Group: "batch", Kind: "Job"}, Path: "spec/template/metadata/labels", CreateIfNotPresent: true},
		types.FieldSpec{Gvk: resid.Gvk{Version: "v1", Kind: "Service"}, Path: "spec/selector", CreateIfNotPresent: true})
}

func main() {
	function := &config{}
	filter := func(items []*yaml.RNode) ([]*yaml.RNode, error) {
		var deployed []*yaml.RNode
		for _, item := range items {
			if item.GetAnnotations()[local] != "true" {
				deployed = append(deployed, item)
			}
		}
		_, err := labels.Filter{Labels: function.Data, FsSlice: fields()}.Filter(deployed)
		return items, err
	}
	processor := framework.SimpleProcessor{Config: function, Filter: kio.FilterFunc(filter)}
	if err := command.Build(processor, command.StandaloneDisabled, false).Execute(); err != nil {
		os.Exit(1)
	}
}
