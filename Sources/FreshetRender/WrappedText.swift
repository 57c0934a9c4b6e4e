/// Text that is wrapped at spaces.
package enum WrappedText {
    /// Lines of at most this width, except for longer words: a path or a URL is not split.
    package static func lines(_ text: String, columns: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        var used = 0
        // Repeated spaces stay: they may be a part of a path.
        for (index, word) in text.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
            let width = DisplayText.width(of: String(word))
            if index == 0 {
                (line, used) = (String(word), width)
            } else if used + 1 + width > columns, !word.isEmpty, used > 0 {
                lines.append(trimmed(line))
                (line, used) = (String(word), width)
            } else {
                line += " " + word
                used += 1 + width
            }
        }
        return line.isEmpty ? lines : lines + [trimmed(line)]
    }

    /// The line without spaces at its end, which may not fit.
    private static func trimmed(_ line: String) -> String {
        var line = line[...]
        while line.last == " " { line.removeLast() }
        return String(line)
    }
}
