import Glibc
import Testing

/// The code blocks of an article are in the example's source, line for line.
@Suite("Code blocks of the articles")
struct ArticleTests {
    static let articles = "Sources/FreshetSignals/FreshetSignals.docc"

    /// A test case may have several sources, separated by spaces.
    @Test(
        "each code block of the page is in its source",
        arguments: [
            ("\(articles)/GettingStarted.md", "Examples/Signals/Rates.swift"),
            ("\(articles)/ExampleHomePage.md", "Examples/Signals/HomePage.swift"),
            ("\(articles)/ExampleSearch.md", "Examples/Signals/Search.swift"),
            ("\(articles)/ExampleRefreshControl.md", "Examples/Signals/RefreshControl.swift"),
            ("\(articles)/ExampleObservedList.md", "Examples/Signals/ObservedList.swift"),
            ("\(articles)/ExampleForm.md", "Examples/Signals/Form.swift"),
            ("Sources/FreshetTestKit/FreshetTestKit.docc/TestingWithoutWaiting.md", "Tests/Examples/RatesTests.swift"),
            (
                "Sources/FreshetSystemSignals/FreshetSystemSignals.docc/Facts.md",
                "Examples/System/Watchers.swift Examples/System/Forecast.swift"
            ),
        ])
    func blocks(page: String, source: String) throws {
        let source = try source.split(separator: " ").flatMap { try lines(of: String($0)) }
        let blocks = codeBlocks(in: try lines(of: page))
        #expect(!blocks.isEmpty, "\(page) shows no code")
        for block in blocks {
            #expect(source.contains(block: block), "\(page) shows other code:\n\(block.joined(separator: "\n"))")
        }
    }

    @Test("README.md shows the whole template, so that it can be pasted; only the address of the package differs")
    func template() throws {
        let blocks = codeBlocks(in: try lines(of: "README.md"))
        let path = "        .package(name: \"freshet\", path: \"../..\")"
        let package = try lines(of: "Examples/Template/Package.swift").dropLast()
        #expect(package.contains(path))
        let url = "        .package(url: \"https://git.example.com/freshet.git\", branch: \"main\")"
        let program = try lines(of: "Examples/Template/Sources/Template/Template.swift").dropLast()
        #expect(blocks == [package.map { $0 == path ? url : $0 }, Array(program)])
    }

    @Test("a block that differs is found, and a block that is only indented differently is accepted")
    func comparison() {
        let source = ["struct A {", "    var b: Int {", "        1", "    }", "}"]
        #expect(source.contains(block: ["var b: Int {", "    1", "}"]))
        #expect(!source.contains(block: ["var b: Int {", "    2", "}"]))
        #expect(!source.contains(block: ["var b: Int {", "}"]))
        #expect(!source.contains(block: ["var b: Int {", "        1", "}"]))
    }

    private func codeBlocks(in lines: [String]) -> [[String]] {
        var blocks: [[String]] = []
        var block: [String]?
        for line in lines {
            switch (line, block) {
            case ("```swift", nil): block = []
            case ("```", let finished?):
                blocks.append(finished)
                block = nil
            default: block?.append(line)
            }
        }
        return blocks
    }

    private func lines(of path: String) throws -> [String] {
        let root = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
        let file = try #require(fopen("\(root)/\(path)", "r"), "\(path) cannot be read")
        defer { fclose(file) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { text += buffer[..<count] }
        return String(decoding: text, as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }
}

extension [String] {
    /// Whether these lines are here one after the other, all indented by the same amount.
    fileprivate func contains(block: [String]) -> Bool {
        guard let first = block.first, count >= block.count else { return false }
        return (0...(count - block.count)).contains { start in
            guard self[start].hasSuffix(first) else { return false }
            let indent = self[start].dropLast(first.count)
            return indent.allSatisfy { $0 == " " }
                && zip(self[start...], block).allSatisfy { $0 == ($1.isEmpty ? "" : indent + $1) }
        }
    }
}
