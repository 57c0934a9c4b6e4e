"""A chart of lines as SVG: both axes are logarithmic, and colours follow the viewer's scheme."""
import html, math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 70, 190, 50, 56
STYLE = """
.paper { fill: #ffffff } .ink { fill: #1f2328 } .faint { fill: #656d76 } .grid { stroke: #d0d7de }
.s0 { stroke: #656d76; fill: #656d76 } .s1 { stroke: #0969da; fill: #0969da } .s2 { stroke: #cf222e; fill: #cf222e }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } .ink { fill: #e6edf3 } .faint { fill: #9198a1 } .grid { stroke: #3d444d }
.s0 { stroke: #9198a1; fill: #9198a1 } .s1 { stroke: #58a6ff; fill: #58a6ff } .s2 { stroke: #f85149; fill: #f85149 }
}"""


def decades(values):
    return range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)


def svg(title, across, up, series):
    """The text of the picture. `series`: names with their points; each third one has the same colour, and the second
    half of them is dashed."""
    points = [point for _, line in series for point in line]
    xs, ys = decades([x for x, _ in points]), decades([y for _, y in points])

    def place(x, y):
        across_all, up_all = max(xs[-1] - xs[0], 1), max(ys[-1] - ys[0], 1)
        return (LEFT + (math.log10(x) - xs[0]) / across_all * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - (math.log10(y) - ys[0]) / up_all * (HEIGHT - TOP - BOTTOM))

    def text(kind, x, y, words, more=""):
        return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}" {more}>{html.escape(words)}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'role="img" font-family="sans-serif" font-size="12">', f"<title>{html.escape(title)}</title>",
        f"<style>{STYLE}</style>", f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        text("ink", LEFT, 24, title, 'font-size="14" font-weight="bold"'),
        text("faint", LEFT, 42, up), text("faint", LEFT, HEIGHT - 12, across)]
    for power in xs:
        x, _ = place(10 ** power, 10 ** ys[0])
        parts.append(f'<line class="grid" x1="{x:.0f}" x2="{x:.0f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(text("faint", x, HEIGHT - BOTTOM + 18, f"{10 ** power:,}", 'text-anchor="middle"'))
    for power in ys:
        _, y = place(10 ** xs[0], 10 ** power)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.0f}" y2="{y:.0f}"/>')
        parts.append(text("faint", LEFT - 8, y + 4, f"{10 ** power:,}", 'text-anchor="end"'))
    lowest = HEIGHT - 8
    for number, (name, line) in sorted(enumerate(series), key=lambda entry: place(*entry[1][1][-1])[1], reverse=True):
        places = [place(*point) for point in line]
        dashes = ' stroke-dasharray="6 4"' if number >= len(series) / 2 else ""
        track = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline class="s{number % 3}" style="fill: none" stroke-width="2"{dashes} points="{track}"/>')
        parts += [f'<circle class="s{number % 3}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places]
        # Labels do not cover one another.
        lowest = min(places[-1][1] + 4, lowest - 15)
        label = f"{name}: {line[-1][1]:,.0f}"
        parts.append(text(f"s{number % 3}", WIDTH - RIGHT + 10, lowest, label, 'style="stroke: none"'))
    return "\n".join(parts + ["</svg>", ""])
