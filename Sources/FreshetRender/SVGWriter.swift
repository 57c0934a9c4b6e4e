/// Writes an SVG 1.1 document.
///
/// The document needs no script, font or other file. It has a background, so that it is readable on every page; its
/// colours are light, or dark if the viewer prefers that.
package struct SVGWriter: Sendable {
    /// The roles of shapes; each is a class of the style sheet.
    package enum Role: String, Sendable, CaseIterable {
        /// Lines and text.
        case ink
        case faint
        case good, busy, bad, plain
        /// The head of an arrow.
        case arrow
        /// Backgrounds of times: without network, asleep, without known events.
        case offline, asleep, unseen
    }

    package enum Anchor: String, Sendable { case start, middle, end }

    private var body = ""
    private let width: Double
    private let height: Double
    private let title: String

    /// - Parameters:
    ///   - width: the width in pixels.
    ///   - height: the height in pixels.
    ///   - title: the title for screen readers and tooltips.
    package init(width: Double, height: Double, title: String) {
        self.width = width
        self.height = height
        self.title = title
    }

    /// The document.
    package var text: String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        \(start)
        <title>\(Self.escaped(title))</title>
        <style>
        \(Self.styleSheet)
        </style>
        \(background)
        \(body)</svg>

        """
    }

    /// The picture as an element of an HTML page, whose own style sheet has ``styleSheet``.
    package var element: String { "\(start)\n<title>\(Self.escaped(title))</title>\n\(background)\n\(body)</svg>\n" }

    private var start: String {
        let size = "\(Self.number(width)) \(Self.number(height))"
        return """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(Self.number(width))" height="\(Self.number(height))" \
            viewBox="0 0 \(size)" role="img" font-family="sans-serif" font-size="12">
            """
    }

    private var background: String {
        "<rect class=\"paper\" width=\"\(Self.number(width))\" height=\"\(Self.number(height))\"/>"
    }

    /// The style sheet of every picture: the same text each time.
    package static let styleSheet = """
        .paper { fill: #ffffff }
        .ink { stroke: #57606a; fill: #1f2328 }
        .faint { stroke: #d0d7de; fill: #656d76 }
        .arrow { stroke: none; fill: #57606a }
        .good { stroke: #1a7f37; fill: #2da44e }
        .busy { stroke: #9a6700; fill: #d4a72c }
        .bad { stroke: #cf222e; fill: #e5534b }
        .plain { stroke: #57606a; fill: #afb8c1 }
        .offline { stroke: none; fill: #ffe0b8 }
        .asleep { stroke: none; fill: #dcd8f5 }
        .unseen { stroke: none; fill: #eaeef2 }
        .box { fill-opacity: .18 }
        .none { fill: none }
        .words { stroke: none }
        .bad.words { fill: #b42318 }
        @media (prefers-color-scheme: dark) {
        .paper { fill: #0d1117 }
        .ink { stroke: #9198a1; fill: #e6edf3 }
        .faint { stroke: #3d444d; fill: #9198a1 }
        .arrow { fill: #9198a1 }
        .good { stroke: #3fb950; fill: #3fb950 }
        .busy { stroke: #d29922; fill: #d29922 }
        .bad { stroke: #f85149; fill: #f85149 }
        .plain { stroke: #9198a1; fill: #656c76 }
        .offline { fill: #4a3414 }
        .asleep { fill: #2b2652 }
        .unseen { fill: #21262d }
        .none { fill: none }
        .words { stroke: none }
        .bad.words { fill: #ff7b72 }
        }
        """

    package mutating func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ role: Role = .ink) {
        path("M\(Self.number(x1)) \(Self.number(y1))L\(Self.number(x2)) \(Self.number(y2))", role)
    }

    /// - Parameters:
    ///   - data: the attribute `d`.
    ///   - dashes: the attribute `stroke-dasharray`.
    package mutating func path(_ data: String, _ role: Role = .ink, width: Double = 1.2, dashes: String? = nil) {
        let dashed = dashes.map { " stroke-dasharray=\"\($0)\"" } ?? ""
        body +=
            "<path class=\"\(role.rawValue) none\" stroke-width=\"\(Self.number(width))\"\(dashed) d=\"\(data)\"/>\n"
    }

    /// A box.
    ///
    /// - Parameters:
    ///   - isPale: whether the fill is pale, for text on it.
    ///   - hint: the tooltip.
    package mutating func box(
        _ x: Double, _ y: Double, _ width: Double, _ height: Double, _ role: Role, radius: Double = 0,
        isPale: Bool = false, hint: String? = nil
    ) {
        let pale = isPale ? " box" : ""
        let place =
            "x=\"\(Self.number(x))\" y=\"\(Self.number(y))\" width=\"\(Self.number(width))\""
            + " height=\"\(Self.number(height))\"" + (radius > 0 ? " rx=\"\(Self.number(radius))\"" : "")
        element("rect", "class=\"\(role.rawValue)\(pale)\" \(place)", hint)
    }

    /// A filled area that hides the lines below it.
    package mutating func paper(_ x: Double, _ y: Double, _ width: Double, _ height: Double, radius: Double = 0) {
        element(
            "rect",
            "class=\"paper\" x=\"\(Self.number(x))\" y=\"\(Self.number(y))\" width=\"\(Self.number(width))\""
                + " height=\"\(Self.number(height))\" rx=\"\(Self.number(radius))\"", nil)
    }

    package mutating func circle(
        _ x: Double, _ y: Double, radius: Double, _ role: Role, isPale: Bool = false, hint: String? = nil
    ) {
        let pale = isPale ? " box" : ""
        element(
            "circle",
            "class=\"\(role.rawValue)\(pale)\" cx=\"\(Self.number(x))\" cy=\"\(Self.number(y))\" r=\"\(Self.number(radius))\"",
            hint)
    }

    /// A closed shape.
    package mutating func shape(_ data: String, _ role: Role, hint: String? = nil) {
        element("path", "class=\"\(role.rawValue)\" d=\"\(data)\"", hint)
    }

    /// - Parameters:
    ///   - y: the y coordinate of the baseline.
    ///   - turned: the rotation in degrees, clockwise.
    package mutating func words(
        _ text: String, _ x: Double, _ y: Double, _ role: Role = .ink, _ anchor: Anchor = .start, size: Double = 12,
        isBold: Bool = false, turned: Double = 0, hint: String? = nil
    ) {
        guard !text.isEmpty else { return }
        var attributes = "class=\"\(role.rawValue) words\" x=\"\(Self.number(x))\" y=\"\(Self.number(y))\""
        if anchor != .start { attributes += " text-anchor=\"\(anchor.rawValue)\"" }
        if size != 12 { attributes += " font-size=\"\(Self.number(size))\"" }
        if isBold { attributes += " font-weight=\"bold\"" }
        if turned != 0 {
            attributes += " transform=\"rotate(\(Self.number(turned)) \(Self.number(x)) \(Self.number(y)))\""
        }
        let title = hint.map { "<title>\(Self.escaped($0))</title>" } ?? ""
        body += "<text \(attributes)>\(title)\(Self.escaped(text))</text>\n"
    }

    private mutating func element(_ name: String, _ attributes: String, _ hint: String?) {
        if let hint {
            body += "<\(name) \(attributes)><title>\(Self.escaped(hint))</title></\(name)>\n"
        } else {
            body += "<\(name) \(attributes)/>\n"
        }
    }

    /// The approximate width of a text, in pixels: the viewer's font is unknown.
    package static func width(of text: String, size: Double = 12) -> Double {
        Double(DisplayText.width(of: text)) * size * 0.6
    }

    /// A text, cut to an approximate width in pixels.
    package static func cut(_ text: String, to pixels: Double, size: Double = 12) -> String {
        DisplayText.truncated(DisplayText.harmless(text), to: max(1, Int(pixels / (size * 0.6))))
    }

    /// Escapes text for XML; characters that XML cannot contain become `\u{…}`.
    package static func escaped(_ text: String) -> String {
        var result = ""
        for character in DisplayText.harmless(text).unicodeScalars {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\u{FFFE}", "\u{FFFF}": result += "\\u{\(String(character.value, radix: 16))}"
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }

    /// A number in the syntax of SVG, with at most two decimals.
    package static func number(_ value: Double) -> String {
        guard value.isFinite else { return "0" }
        let hundredths = (max(-1e9, min(1e9, value)) * 100).rounded()
        let (whole, rest) = (Int64(abs(hundredths)) / 100, Int64(abs(hundredths)) % 100)
        let sign = hundredths < 0 ? "-" : ""
        if rest == 0 { return "\(sign)\(whole)" }
        return rest % 10 == 0 ? "\(sign)\(whole).\(rest / 10)" : "\(sign)\(whole).\(rest < 10 ? "0" : "")\(rest)"
    }
}
