/// Text for people, broken at spaces.
package enum WrappedText {
    /// Lines of at most so many columns, but for a word that is longer: a path or a URL stays whole.
    package static func lines(_ text: String, columns: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        var used = 0
        // Further spaces between two words stay, for they may be a part of what is told, such as a path.
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

    /// Without the spaces at its end, for which there may be no room.
    private static func trimmed(_ line: String) -> String {
        var line = line[...]
        while line.last == " " { line.removeLast() }
        return String(line)
    }
}
