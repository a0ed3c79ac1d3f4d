#!/usr/bin/env python3
"""Draws docs/pool.svg: how pool, local, sheaf, barn, slab and page source stand to each other.

    python3 docs/picture.py > docs/pool.svg

No blank line and no indentation of four: the picture is also part of the crate's documentation, inside Markdown.
"""

WIDTH, HEIGHT = 840, 560
INK, PALE, FULL, FREE, PAPER = "#24292f", "#57606a", "#2f81b7", "#ffffff", "#f6f8fa"
LIVE, BORROWED = "#d4a72c", "#2da44e"
out = []


def put(text):
    out.append(text)


def rect(x, y, w, h, fill=PAPER, stroke=INK, radius=6, dash=""):
    dash = f' stroke-dasharray="{dash}"' if dash else ""
    put(f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{radius}" fill="{fill}" stroke="{stroke}"{dash}/>')


def text(x, y, words, size=13, fill=INK, anchor="start", weight="normal"):
    put(f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>')


def arrow(x1, y1, x2, y2, both=True):
    start = ' marker-start="url(#tip)"' if both else ""
    put(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{INK}" stroke-width="1.5" marker-end="url(#tip)"{start}/>')


def sheaf(x, y, full, cells=6, colour=FULL, w=26):
    """A stack of slots, of which the lower `full` are there."""
    for cell in range(cells):
        there = cell >= cells - full
        rect(x, y + cell * 9, w, 9, colour if there else FREE, INK, 0)


def slab(x, y, slots):
    """A slab: a header and its slots; o is live, . is free."""
    rect(x, y, len(slots) * 13 + 22, 26, FREE)
    rect(x, y, 16, 26, PALE, INK, 4)
    for place, slot in enumerate(slots):
        rect(x + 19 + place * 13, y + 4, 11, 18, LIVE if slot == "o" else FREE, INK, 1)


def local(x, name, main, spare, retired):
    rect(x, 92, 196, 112)
    text(x + 98, 110, name, 13, INK, "middle", "bold")
    for place, (what, full) in enumerate([("main", main), ("spare", spare), ("rcu", retired)]):
        left = x + 26 + place * 60
        sheaf(left, 120, full, colour=LIVE if what == "rcu" else FULL)
        text(left + 13, 192, what, 12, INK, "middle")


put(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
    'font-family="sans-serif" role="img" aria-label="A pool: threads with sheaves, a barn, slabs, a page source">')
put('<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
    f'<path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>')
rect(0, 0, WIDTH, HEIGHT, "#ffffff", "#d0d7de", 8)

# The handle and what a user holds.
rect(24, 20, 412, 38)
text(230, 44, "Pool&lt;T&gt;: alloc, drop, retire", 14, INK, "middle", "bold")
rect(480, 20, 336, 38, FREE, BORROWED)
text(648, 44, "PrefilledSheaf&lt;T&gt;: n slots, yours alone", 14, INK, "middle", "bold")

# Threads.
arrow(122, 58, 122, 92)
arrow(338, 58, 338, 92)
text(230, 80, "push and pop: no lock", 12, PALE, "middle")
local(24, "local of thread 1", 4, 6, 2)
local(240, "local of thread 2", 1, 0, 0)
rect(480, 92, 120, 112, FREE, BORROWED)
text(540, 110, "borrowed", 13, INK, "middle", "bold")
sheaf(527, 120, 5, colour=BORROWED)
arrow(540, 58, 540, 92)
text(614, 128, "alloc and free: no lock,", 12, PALE)
text(614, 144, "no system call, no fault,", 12, PALE)
text(614, 160, "whatever others do", 12, PALE)
arrow(436, 148, 480, 148)

# The barn.
arrow(230, 204, 230, 244)
text(242, 229, "whole sheaves change hands: one short lock", 12, PALE)
arrow(540, 204, 540, 244)
rect(24, 244, 576, 96)
text(44, 264, "barn", 13, INK, "start", "bold")
for place in range(5):
    sheaf(110 + place * 34, 254, 6)
text(195, 330, "full", 12, INK, "middle")
for place in range(4):
    sheaf(360 + place * 34, 254, 0)
text(424, 330, "empty", 12, INK, "middle")

# Slabs.
arrow(230, 340, 230, 380)
text(242, 365, "a sheaf of slots at a time: refill, flush", 12, PALE)
rect(24, 380, 576, 96)
text(44, 400, "node", 13, INK, "start", "bold")
slab(44, 408, "oooooo.o.oo..o")
slab(270, 408, "o..o..........")
slab(44, 440, "oooooooooooooo")
slab(270, 440, "..............")
text(496, 425, "partial slabs", 12, INK)
text(496, 458, "full, empty", 12, INK)

# Pages.
arrow(230, 476, 230, 506)
text(242, 496, "pages of 64 KiB, 2^order of them a slab", 12, PALE)
rect(24, 506, 576, 36)
text(312, 529, "page source: Mmap, Heap, Arena, Region, or your own", 14, INK, "middle", "bold")

# What the colours mean.
for place, (colour, what) in enumerate([(FULL, "free slot in a sheaf"), (BORROWED, "free slot, reserved"),
                                        (LIVE, "object: live, or retired"), (FREE, "free slot in a slab")]):
    rect(622, 262 + place * 26, 14, 14, colour, INK, 1)
    text(646, 274 + place * 26, what, 12)
text(622, 400, "The page map tells the pool", 12, PALE)
text(622, 416, "of an address, so a PoolBox", 12, PALE)
text(622, 432, "is one pointer and may be", 12, PALE)
text(622, 448, "dropped anywhere.", 12, PALE)
put("</svg>")
print("\n".join(out))
