import FreshetControl
import Glibc
import Testing

@Suite struct ControlInterfaceTests {
    @Test("the embedded description is the file in varlink/")
    func embeddedDescription() throws {
        let text = try #require(contents(of: repository + "/varlink/io.freshet.Control.varlink"))
        #expect(ControlInterface.description == text)
    }

    @Test("the description defines every type that it names, and uses every type that it defines")
    func types() {
        let code = ControlInterface.description.split(separator: "\n").filter { !$0.hasPrefix("#") }
            .joined(separator: " ")
        let words = code.split { !$0.isLetter && !$0.isNumber && $0 != ":" && $0 != "." }
        let defined = zip(words, words.dropFirst()).filter { $0.0 == "type" }.map(\.1)
        // Names of types begin with a capital; so do names of methods and errors, which follow these keywords.
        let used = zip(words, words.dropFirst()).filter { before, word in
            word.first?.isUppercase == true && !["type", "method", "error"].contains(before)
        }.map(\.1)
        #expect(Set(used) == Set(defined))
        #expect(defined.count > 30)
    }

    @Test("the description avoids syntax that existing parsers reject")
    func portability() {
        let code = ControlInterface.description.split(separator: "\n").filter { !$0.hasPrefix("#") }
            .joined(separator: "\n")
        #expect(!ControlInterface.description.contains("\r"))
        #expect(!code.contains("any"))
        #expect(!code.contains("-") || !code.replacing("->", with: "").contains("-"))
        #expect(!code.contains("__"))
        let compact = code.filter { !$0.isWhitespace }
        #expect(!compact.contains(",)"))
        #expect(!compact.contains("(_") && !compact.contains(",_"))
    }
}

/// The repository's directory, derived from the path of this file.
let repository = #filePath.split(separator: "/").dropLast(4).map { "/" + $0 }.joined()

func contents(of path: String) -> String? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4_096)
    while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { bytes += chunk[..<count] }
    return String(validating: bytes, as: UTF8.self)
}
