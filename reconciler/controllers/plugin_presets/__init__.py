"""Controller of PluginPresets, Plugins and PluginOverrides (API group `greenhouse.sap`, version `v1alpha1`).

The controller resolves the options of each Plugin, and generates the files of the Plugin's package: the Plugin object
and optional files. It does not render packages.
"""
