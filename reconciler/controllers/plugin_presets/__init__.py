"""Controller of PluginPresets, Plugins and PluginOverrides (`greenhouse.sap`, Greenhouse v1alpha1).

It resolves the options of each Plugin, and generates the Plugin and its optional files. It does not render packages.
"""
