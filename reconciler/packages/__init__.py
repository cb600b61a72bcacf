"""The kpt package engine: packages, Kptfiles, function pipelines, built-in functions, and three-way updates.

All code here is pure: file trees in, file trees and findings out. Fetching, processes and Git objects do not belong
here.
"""
