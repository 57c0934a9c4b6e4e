/// Why a recording cannot be read: the file, the line, and what is wrong there.
package struct RecordingError: Error, Hashable, Sendable, CustomStringConvertible {
    package var file: String
    /// Counted from 1; nil: the whole file.
    package var line: Int?
    package var message: String

    package init(file: String, line: Int? = nil, _ message: String) {
        self.file = file
        self.line = line
        self.message = message
    }

    /// For people, such as `day.freshet:7: this is not JSON`.
    package var description: String { "\(file)\(line.map { ":\($0)" } ?? ""): \(message)" }
}
