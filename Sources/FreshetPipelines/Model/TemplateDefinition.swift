import FreshetModel

/// A template that makes the copy from the data (`transform.template`). Its text is a part of the configuration: it is
/// read with the pipeline's file, so that a changed template is a changed definition.
package struct TemplateDefinition: Hashable, Sendable {
    /// How `{{name}}` is written, for the program that reads the copy.
    package enum Escape: String, CaseIterable, Hashable, Sendable {
        case none, json, shell, nginx, html
    }

    /// The longest template, in bytes, as of a jq program.
    package static let maxBytes = 64 << 10

    /// The path of its file, for messages.
    package var file: String
    package var text: String
    package var escape: Escape

    package init(_ text: String, in file: String, escape: Escape) {
        self.file = file
        self.text = text
        self.escape = escape
    }

    /// Templates with canonically equivalent texts are different: the copies have different bytes.
    package static func == (one: Self, other: Self) -> Bool {
        one.text.hasSameBytes(as: other.text) && one.escape == other.escape && one.file == other.file
    }

    /// Everything that decides what the copy becomes. Where the file is does not matter.
    var bindingText: String { "template:\(escape) \(text)" }
}
