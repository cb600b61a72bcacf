"""The kpt package engine: packages, Kptfiles, function pipelines, built-in functions, and three-way updates.

Functions of this package convert file trees into file trees and findings, without side effects. Code that fetches,
starts processes or writes Git objects does not belong here.
"""
