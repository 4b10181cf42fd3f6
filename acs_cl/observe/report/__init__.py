"""The report: one HTML page that says where a block's time went, and why launches did not overlap.

`columns` makes its data, `what_if` asks the emulator, `page` puts data, style and scripts together.
The files beside these are the page's own: it uses no library and no network.
"""
