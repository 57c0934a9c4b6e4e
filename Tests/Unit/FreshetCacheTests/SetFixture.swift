import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

extension CacheDestination {
    /// Two files, `a.txt` and `b.json`, below the link `catalogue`.
    static var catalogue: CacheDestination {
        var destination = CacheDestination(pipeline: "shop", file: "catalogue.stamp", keep: 2)
        destination.isSet = true
        return destination
    }

    /// The same pipeline with one file.
    static let single = CacheDestination(pipeline: "shop", file: "catalogue", keep: 2)
}

/// A set as a reader in its directory finds it.
struct SeenSet: Hashable, CustomStringConvertible {
    var files: [String: String]

    static func of(_ text: String) -> SeenSet {
        SeenSet(files: ["a.txt": "\(text) \"a\"\n", "b.json": "{\"v\":\"\(text)\",\"l\":[1,2]}\n"])
    }

    /// The content that is committed for this set.
    static func bundle(_ text: String) -> String {
        #"{"a.txt":"\#(text) \"a\"\n","b.json":{"v":"\#(text)","l":[1,2]}}"# + "\n"
    }

    /// The files in a directory; nil if it does not exist.
    init?(at path: String) throws {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        files = [:]
        for entry in try LinuxFileSystem().list(path + "/.") {
            files[entry.name] = String(decoding: try TemporaryDirectory.read(path + "/" + entry.name), as: UTF8.self)
        }
    }

    init(files: [String: String]) { self.files = files }

    var description: String { files.description }
}

extension CacheFixture {
    @discardableResult
    func commitSet(_ text: String, at seconds: Int64 = 1000) throws -> CommitOutcome {
        try commit(SeenSet.bundle(text), to: .catalogue, validators: [.tag(text)], at: seconds)
    }

    func refuseSet(_ text: String) throws {
        let pending = try cache.begin(.catalogue)
        try pending.write(Array(SeenSet.bundle(text).utf8))
        _ = try pending.reject(because: "a check", validators: [.tag(text)], at: WallTime(seconds: 50))
    }

    var seen: SeenSet? { get throws { try SeenSet(at: directory.cache + "/current/catalogue") } }

    var target: String? { get throws { try LinuxFileSystem().linkTarget(directory.cache + "/current/catalogue") } }

    /// Checks that link, stamp and index agree, that the directory is complete, and that no unfinished file is left.
    func checkSet(_ allowed: [String?], _ situation: Comment) throws {
        let current = try cache.current("shop")
        let seen = try seen
        #expect((seen == nil) == (current == nil), situation)
        #expect(allowed.map { $0.map(SeenSet.of) }.contains(seen), "\(String(describing: seen)), \(situation)")
        if let current {
            let content = StoredContent(number: Int64(current.number), digest: current.digest)
            let set = try cache.sets.name(of: content, in: "shop")
            #expect(try target == "../sets/shop/\(set.name)", situation)
            #expect(try LinuxFileSystem().digest(of: current.path) == current.digest, situation)
            #expect(current.directory == directory.cache + "/current/catalogue", situation)
            let text = try reader("catalogue.stamp")
            #expect(allowed.contains { $0.map { SeenSet.bundle($0) == text && SeenSet.of($0) == seen } ?? false })
        }
        #expect(
            try names("current") == (current == nil ? [] : ["catalogue", "catalogue.stamp"]), situation)
        #expect(try names("sets/shop").allSatisfy { StoredContent(name: $0) != nil }, situation)
        let found = try cache.checker.examine("shop").findings + cache.checker.examineStrays().findings
        #expect(found.isEmpty, "\(found), \(situation)")
    }
}
