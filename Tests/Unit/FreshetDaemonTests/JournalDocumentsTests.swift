import Glibc
import Logging
import Testing

@testable import FreshetDaemon

/// The catalog and the page contain exactly the messages of the code.
@Suite("The documents about the journal")
struct JournalDocumentsTests {
    private func lines(_ path: String) throws -> [String] {
        let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let file = try #require(fopen("/\(root)/\(path)", "r"), "\(path)")
        defer { fclose(file) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { text += buffer[..<count] }
        return String(decoding: text, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            .map(String.init)
    }

    /// The cells of the rows that follow this title row.
    private func table(_ title: String, in lines: [String]) -> [[String]] {
        let start = lines.firstIndex { $0.hasPrefix("| \(title) |") } ?? lines.endIndex
        return lines[start...].dropFirst(2).prefix { $0.hasPrefix("|") }.map { row in
            row.split(separator: "|").map { $0.trimmed }
        }
    }

    @Test("the catalog has one complete entry for each message, and names only existing fields")
    func catalog() throws {
        let lines = try lines("systemd/freshet.catalog")
        let identifiers = lines.filter { $0.hasPrefix("-- ") }.map { String($0.dropFirst(3)) }
        #expect(identifiers == JournalMessage.allCases.map(\.rawValue))
        let fields = Set(JournalField.allCases.map(\.fieldName))
        for (number, line) in lines.enumerated() where line.hasPrefix("-- ") {
            let header = lines[(number + 1)...].prefix { !$0.isEmpty }
            #expect(
                header.map { $0.prefix { $0 != ":" } } == ["Subject", "Defined-By", "Documentation"], "\(line)")
            let body = lines[(number + header.count + 2)...].prefix { !$0.hasPrefix("-- ") }
            #expect(body.contains { $0.count > 20 }, "\(line)")
            for line in body {
                for (index, name) in line.split(separator: "@", omittingEmptySubsequences: false).enumerated()
                where !index.isMultiple(of: 2) {
                    #expect(fields.contains(String(name)), "\(line)")
                }
            }
        }
    }

    @Test("the page lists each message with its level and identifier")
    func messages() throws {
        let rows = table("message", in: try lines("docs/journal.md"))
        let expected = JournalMessage.allCases.map { message in
            ["\(message.text)", message.level.syslogName, "`\(message.rawValue)`"]
        }
        #expect(rows.map { Array($0.prefix(3)) } == expected)
        let known = Set(JournalField.allCases.map { "`\($0.rawValue)`" })
        var used: Set<String> = []
        for row in rows {
            for value in row.dropFirst(3).joined().split(separator: ",").map(\.trimmed) where !value.isEmpty {
                #expect(known.contains(value), "\(row)")
                used.insert(value)
            }
        }
        #expect(used == known)
    }

    @Test("the page lists each field")
    func fields() throws {
        let rows = table("value", in: try lines("docs/journal.md"))
        #expect(
            rows.map { Array($0.prefix(2)) } == JournalField.allCases.map { ["`\($0.rawValue)`", "`\($0.fieldName)`"] })
    }

    @Test("identifiers are valid for journald, and texts are constant")
    func identifiers() {
        #expect(Set(JournalMessage.allCases.map(\.rawValue)).count == JournalMessage.allCases.count)
        for message in JournalMessage.allCases {
            #expect(message.rawValue.utf8.count == 32)
            #expect(message.rawValue.allSatisfy { "0123456789abcdef".contains($0) })
            #expect(!message.text.description.isEmpty)
        }
    }
}

extension JournalField {
    /// The name of the field in the journal, written a second time on purpose.
    fileprivate var fieldName: String {
        "FRESHET_" + rawValue.uppercased().split(separator: "-").joined(separator: "_")
    }
}

extension Logger.Level {
    fileprivate var syslogName: String {
        switch self {
        case .trace, .debug: "debug"
        case .info: "info"
        case .notice: "notice"
        case .warning: "warning"
        case .error: "err"
        case .critical: "crit"
        }
    }
}

extension Substring {
    fileprivate var trimmed: String {
        String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
