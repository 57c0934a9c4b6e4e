/// Writes the body of an HTML document. Texts and the values of attributes are escaped; the names of elements and
/// attributes are constants of the program.
package struct HTMLWriter: Sendable {
    /// An attribute; a nil value leaves it out.
    package typealias Attribute = (name: StaticString, value: String?)

    package private(set) var text = ""

    package init() {}

    /// Begins an element.
    package mutating func open(_ name: StaticString, _ attributes: Attribute...) { begin(name, attributes) }

    /// Ends an element. A line feed follows, except within a sentence.
    package mutating func close(_ name: StaticString) {
        let end = "</\(name)>"
        text += end == "</time>" ? end : end + "\n"
    }

    /// An element with a text.
    package mutating func element(_ name: StaticString, _ content: String, _ attributes: Attribute...) {
        begin(name, attributes)
        words(content)
        close(name)
    }

    /// A text.
    package mutating func words(_ content: String) { text += SVGWriter.escaped(content) }

    /// A picture.
    package mutating func picture(_ picture: SVGWriter) { text += picture.element }

    private mutating func begin(_ name: StaticString, _ attributes: [Attribute]) {
        text += "<\(name)"
        for attribute in attributes {
            guard let value = attribute.value else { continue }
            text += " \(attribute.name)=\"\(SVGWriter.escaped(value))\""
        }
        text += ">"
    }
}
