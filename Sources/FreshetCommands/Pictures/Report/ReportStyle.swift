import FreshetRender

/// The style sheet of the page of `report`. It is the same text each time: the page's Content-Security-Policy allows
/// only the style sheet with this digest, so that no text of a page can add another one.
enum ReportStyle {
    /// The SHA-256 digest of ``text``, in Base64. A test compares it.
    static let digest = "6p/8MpXto8bE7gq+fTawpqFSy0OLaLHp7FFM6vA6UPM="

    /// The content of the element `style`.
    static let text = """

        \(SVGWriter.styleSheet)
        :root { color-scheme: light dark; --page: #ffffff; --ink: #1f2328; --faint: #59636e; --line: #d1d9e0;
        --band: #f6f8fa; --good: #1a7f37; --busy: #8a5d00; --bad: #c01c28 }
        @media (prefers-color-scheme: dark) {
        :root { --page: #0d1117; --ink: #e6edf3; --faint: #9198a1; --line: #3d444d; --band: #151b23; --good: #3fb950;
        --busy: #d8a634; --bad: #ff7b72 }
        }
        * { box-sizing: border-box }
        body { margin: 0 auto; padding: 1.25rem; max-width: 84rem; background: var(--page); color: var(--ink);
        font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
        h1 { margin: 0; font-size: 1.6rem; line-height: 1.25 }
        h2 { margin: 2rem 0 .5rem; font-size: 1.2rem }
        p { margin: .4rem 0 }
        .note { color: var(--faint) }
        .verdict { font-weight: 600; font-size: 1.1rem; padding: .5rem .8rem; border-left: .3rem solid; margin: 1rem 0;
        background: var(--band) }
        .is-good { color: var(--good) }
        .is-busy { color: var(--busy) }
        .is-bad { color: var(--bad) }
        table { width: 100%; border-collapse: collapse; text-align: left }
        caption { text-align: left; color: var(--faint); padding-bottom: .4rem }
        th, td { padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
        thead th { color: var(--faint); font-weight: 600; white-space: nowrap }
        tbody th { font-weight: 600; min-width: 8rem }
        td.short { white-space: nowrap }
        td.state { font-weight: 600; min-width: 7rem }
        td p { margin: 0 }
        .picture { overflow-x: auto; border: 1px solid var(--line); border-radius: .4rem; padding: .5rem }
        .picture:focus-visible { outline: .2rem solid #4493f8 }
        .picture svg { display: block }
        @media (max-width: 44rem) {
        body { padding: .9rem }
        thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden }
        table, caption, tbody, tr, th, td { display: block }
        tr { padding: .6rem 0; border-bottom: 1px solid var(--line) }
        th, td { border: 0; padding: .1rem 0 }
        td:empty { display: none }
        td.short { white-space: normal }
        td::before { content: attr(data-label) ": "; color: var(--faint); font-weight: 400 }
        td p { display: inline }
        }
        @media print { .picture { overflow: visible } }

        """
}
