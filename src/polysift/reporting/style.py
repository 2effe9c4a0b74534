"""The style sheet of a report, and the policy by which a browser loads and runs nothing else.

The policy names the sheet by its digest. Styles of single elements, such as the width of a bar, are
not allowed by that: they are moved into the sheet.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

INLINE = re.compile(r' style="([^"]*)"')
"""The style of an element. Text is escaped, so that it has no such quotation marks."""


def collected(body: str, sheet: str) -> tuple[str, str]:
    """Return HTML without styles of elements, and the style sheet with them."""
    numbers: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        return f' data-style="{numbers.setdefault(found[1], len(numbers))}"'

    body = INLINE.sub(numbered, body)
    rules = "".join(f'[data-style="{k}"] {{ {_strong(rule)} }}\n' for rule, k in numbers.items())
    return body, sheet + rules


def _strong(rule: str) -> str:
    """Return declarations that prevail over the rules of the sheet, as those of an element do."""
    return " ".join(f"{one} !important;" for one in rule.split(";") if one)


def policy(sheet: str) -> str:
    """Return the Content-Security-Policy of a page: its sheet and its own pictures, no more."""
    digest = b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


STYLE = f"""\
:root {{ color-scheme: light; --accent: #0072b2; --other: #d55e00; --ink: #1d2730;
  --soft: #5d6a76; --line: #e3e7eb; --wash: #f5f7f9; }}
* {{ box-sizing: border-box; }}
html {{ scroll-padding-top: 4rem; -webkit-text-size-adjust: 100%; }}
@media (prefers-reduced-motion: no-preference) {{ html {{ scroll-behavior: smooth; }} }}
body {{ margin: 0; background: var(--wash); color: var(--ink); font: 16px/1.6 {FONTS};
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }}
header, main, footer {{ max-width: 1040px; margin: 0 auto; padding: 0 1.25rem; }}
header {{ padding-top: 3.5rem; padding-bottom: 1.75rem; }}
.eyebrow {{ margin: 0; color: var(--accent); font-size: .8rem; font-weight: 600;
  letter-spacing: .09em; text-transform: uppercase; }}
h1 {{ margin: .35rem 0 .5rem; font-size: clamp(1.7rem, 5vw, 2.5rem); line-height: 1.15;
  letter-spacing: -.02em; font-weight: 700; }}
.subtitle {{ margin: 0; max-width: 46rem; color: var(--soft); font-size: 1.08rem; }}
nav {{ position: sticky; top: 0; z-index: 2; display: flex; gap: .1rem; overflow-x: auto;
  padding: .5rem .75rem .5rem max(.75rem, calc(50vw - 520px + .6rem));
  background: rgba(255,255,255,.95);
  border: solid var(--line); border-width: 1px 0; scrollbar-width: thin; }}
nav a {{ padding: .3rem .42rem; border-radius: 99px; color: var(--soft); font-size: .82rem;
  text-decoration: none; white-space: nowrap; }}
nav a:hover, nav a:focus-visible {{ background: #e5f1f8; color: var(--accent); }}
section {{ margin: 1.5rem 0; padding: 1.75rem 2rem 2rem; background: #fff;
  border: 1px solid var(--line); border-radius: 14px; }}
h2 {{ margin: 0 0 .75rem; font-size: 1.35rem; line-height: 1.25; letter-spacing: -.01em; }}
h3 {{ margin: 1.75rem 0 .5rem; font-size: 1rem; }}
p {{ margin: .5rem 0 1rem; max-width: 46rem; }}
.note {{ color: var(--soft); font-size: .9rem; }}
.warning {{ padding: .35rem .8rem; border-left: 3px solid var(--other); background: #fdf3ea; }}
section > :last-child, .beside > div > :last-child {{ margin-bottom: 0; }}
.tiles {{ display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); gap: .75rem;
  margin: 1.25rem 0 0; }}
.tile {{ padding: .85rem 1rem .8rem; background: var(--wash); border-radius: 10px; }}
.tile dt {{ color: var(--soft); font-size: .82rem; }}
.tile dd {{ margin: 0; font-size: 1.65rem; font-weight: 650; line-height: 1.3;
  letter-spacing: -.01em; }}
.tile small {{ display: block; color: var(--soft); font-size: .78rem; font-weight: 400;
  line-height: 1.35; letter-spacing: 0; }}
.tile:first-child {{ grid-column: span 2; grid-row: span 2; padding: 1.1rem 1.3rem;
  background: var(--accent); display: flex; flex-direction: column; justify-content: center; }}
.tile:first-child dt, .tile:first-child small {{ color: #e3f1f9; font-size: .92rem; }}
.tile:first-child dd {{ color: #fff; font-size: clamp(2.4rem, 5vw, 3.3rem); line-height: 1.2; }}
.facts {{ margin: 0 0 1.25rem; }}
.facts > div {{ display: grid; grid-template-columns: 11rem 1fr; gap: 1rem; padding: .38rem 0;
  border-bottom: 1px solid var(--line); }}
.facts > div:last-child {{ border-bottom: 0; }}
.facts dt {{ color: var(--soft); }}
.facts dd {{ margin: 0; }}
.beside {{ display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem 2.5rem;
  align-items: start; }}
figure {{ margin: 0 0 .5rem; }}
figure img {{ display: block; width: 100%; max-width: 560px; height: auto; background: #fff; }}
figcaption {{ color: var(--soft); font-size: .86rem; line-height: 1.45; margin-top: .35rem; }}
.scroll {{ overflow-x: auto; margin: .5rem 0 1.25rem; }}
table {{ border-collapse: collapse; font-size: .93rem; width: 100%; }}
caption {{ padding-bottom: .4rem; color: var(--soft); font-size: .86rem; text-align: left; }}
th, td {{ padding: .42rem .7rem; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: top; overflow-wrap: normal; }}
th {{ font-weight: 500; }}
thead th {{ color: var(--soft); font-size: .84rem; vertical-align: bottom; }}
tbody th, thead th:first-child {{ text-align: left; padding-left: 0; }}
th small {{ display: block; color: var(--soft); font-size: .8rem; font-weight: 400; }}
.figures td {{ font-weight: 600; }}
.figures tbody th {{ min-width: 13rem; }}
.figures thead th {{ overflow-wrap: anywhere; min-width: 5.5rem; }}
.pairs td:nth-child(2), .pairs tbody th, .parameters td {{ overflow-wrap: anywhere;
  min-width: 7rem; }}
.words td, .words th, .pairs td:nth-child(2), .pairs th, .pairs thead th:nth-child(2)
  {{ text-align: left; }}
.columns td, .columns thead th {{ text-align: left; }}
.columns td:nth-child(3), .columns td:nth-child(4), .columns thead th:nth-child(3),
.columns thead th:nth-child(4) {{ text-align: right; white-space: nowrap; }}
.columns td:nth-child(2) {{ white-space: nowrap; }}
.parameters td {{ text-align: left; font-family: ui-monospace, Menlo, Consolas, monospace;
  font-size: .86rem; }}
.parameters thead th {{ text-align: left; }}
td small {{ display: block; color: var(--soft); font-size: .92em; }}
.marked > * {{ background: #eaf4fa; }}
.marked > th {{ box-shadow: inset 3px 0 var(--accent); padding-left: .7rem; }}
.best tbody th, .best thead th:first-child {{ padding-left: .7rem; text-align: right;
  white-space: nowrap; }}
.best td {{ white-space: nowrap; }}
.best td:nth-child(2), .best td:nth-child(5), .best thead th:nth-child(2),
.best thead th:nth-child(5) {{ text-align: left; }}
.parameters th, .parameters td {{ padding-top: .25rem; padding-bottom: .25rem; }}
.bars {{ margin: .25rem 0 1.25rem; }}
.bars th, .bars td {{ border: 0; padding: .25rem 0; line-height: 18px; vertical-align: top; }}
.bars tbody th {{ max-width: 11rem; overflow: hidden; padding-right: .9rem;
  text-overflow: ellipsis; white-space: nowrap; }}
.bars .track {{ width: 70%; }}
.bars .value {{ padding-left: .75rem; text-align: right; color: var(--soft); font-size: .86rem;
  white-space: nowrap; }}
.value span {{ display: block; }}
.value span + span {{ color: #b04e00; }}
.track i {{ display: block; min-width: 2px; height: 12px; margin: 3px 0 6px;
  border-radius: 0 3px 3px 0; background: var(--accent); }}
.track .bar1 {{ background: #fff; border: 1.5px solid var(--other); }}
.track .muted {{ background: #c3ccd4; }}
.track .hidden {{ visibility: hidden; }}
.key i {{ display: inline-block; width: .8rem; height: .72rem; margin: 0 .35rem 0 .9rem;
  border-radius: 2px; background: var(--accent); }}
.key i:first-child {{ margin-left: 0; }}
.key .bar1 {{ background: #fff; border: 1.5px solid var(--other); }}
.confusion {{ width: auto; border-spacing: 2px; border-collapse: separate; font-size: .88rem; }}
.confusion th, .confusion td {{ border: 0; border-radius: 4px; padding: .4rem .55rem;
  text-align: center; vertical-align: middle; line-height: 1.3; min-width: 2.7rem; }}
.confusion th {{ max-width: 11rem; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }}
.confusion tbody th {{ text-align: right; }}
.confusion .corner {{ color: var(--soft); font-size: .78rem; text-align: right; }}
.dense th, .dense td {{ min-width: 2rem; padding: .3rem .25rem; font-size: .8rem; }}
.dense .margin {{ font-size: .72rem; }}
.roomy td {{ min-width: 5rem; padding: .7rem .6rem; font-size: .95rem; }}
.confusion td small {{ color: inherit; font-size: .76rem; opacity: .85; }}
.confusion .dark {{ color: #fff; }}
.confusion .zero {{ color: #b4bcc4; background: var(--wash); }}
.confusion .margin {{ color: var(--soft); font-size: .8rem; white-space: nowrap;
  text-align: center; }}
.upright thead th span {{ display: inline-block; max-height: 10rem; overflow: hidden;
  text-overflow: ellipsis; writing-mode: vertical-rl; transform: rotate(180deg); }}
.names {{ display: flex; flex-wrap: wrap; gap: .35rem; margin: .15rem 0; padding: 0;
  list-style: none; }}
.names li {{ max-width: 100%; padding: .05rem .55rem; border-radius: 5px; background: var(--wash);
  font-size: .86rem; }}
pre {{ margin: .5rem 0 1.25rem; padding: 1rem 1.2rem; overflow-x: auto; background: #1d2730;
  color: #eef2f5; border-radius: 10px; font: .86rem/1.6 ui-monospace, Menlo, Consolas, monospace;
  overflow-wrap: normal; }}
footer {{ padding-top: .5rem; padding-bottom: 3rem; color: var(--soft); font-size: .86rem; }}
@media (max-width: 720px) {{
  header {{ padding-top: 2.25rem; }}
  header, main, footer {{ padding-left: .9rem; padding-right: .9rem; }}
  section {{ padding: 1.25rem 1rem 1.4rem; margin: 1rem 0; }}
  .beside {{ grid-template-columns: minmax(0, 1fr); }}
  .facts > div {{ grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); }}
  .bars tbody th {{ max-width: 8.5rem; font-size: .84rem; }}
  th, td {{ padding-left: .4rem; padding-right: .4rem; }}
  .figures tbody th {{ min-width: 8rem; }}
  .figures thead th {{ min-width: 5rem; }}
  .roomy td {{ min-width: 3.9rem; padding: .5rem .3rem; }}
  .confusion .margin {{ min-width: 0; }}
  .tiles {{ grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .6rem; }}
  .tile:first-child {{ grid-row: auto; }}
  .tile dd {{ font-size: 1.35rem; }}
}}
@media print {{
  body {{ background: #fff; font-size: 10.5pt; }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  nav {{ display: none; }}
  header, main, footer {{ max-width: none; padding-left: 0; padding-right: 0; }}
  section {{ border: 0; padding: 0; }}
  h2, h3, caption {{ break-after: avoid; }}
  figure, tr, .tile, pre {{ break-inside: avoid; }}
  .scroll {{ overflow: visible; }}
  pre {{ background: var(--wash); color: var(--ink); white-space: pre-wrap; }}
}}
"""
"""The style sheet of all pages."""
