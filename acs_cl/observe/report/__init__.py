"""The report: one HTML page that tells where a block's time went, and why launches did not overlap.

`columns` makes its data, `what_if` asks the emulator, and `page` joins data, style and scripts. The
page uses the files beside these modules, no library and no network.
"""
