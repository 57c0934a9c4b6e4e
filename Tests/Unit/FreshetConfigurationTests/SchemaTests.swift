import FoundationEssentials
import Testing

@testable import FreshetConfiguration

@Suite("The JSON Schemas of the configuration")
struct SchemaTests {
    /// A part of a schema with its keys.
    private final class Part: Decodable {
        var properties: [String: Part]?
        var definitions: [String: Part]?
        var anyOf: [Part]?
        var allOf: [Part]?
        var reference: String?
        /// The schema of values whose keys the administrator chooses; nil if there are no such keys.
        var named: Part?
        var isClosed: Bool

        private enum Key: String, CodingKey {
            case properties, definitions, anyOf, allOf, additionalProperties
            case reference = "$ref"
        }

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: Key.self)
            properties = try values.decodeIfPresent([String: Part].self, forKey: .properties)
            definitions = try values.decodeIfPresent([String: Part].self, forKey: .definitions)
            anyOf = try values.decodeIfPresent([Part].self, forKey: .anyOf)
            allOf = try values.decodeIfPresent([Part].self, forKey: .allOf)
            reference = try values.decodeIfPresent(String.self, forKey: .reference)
            isClosed = (try? values.decode(Bool.self, forKey: .additionalProperties)) == false
            named = try? values.decode(Part.self, forKey: .additionalProperties)
        }
    }

    /// The mapping that a part is, or that is one of its alternatives; nil if there is no mapping.
    private func mapping(_ part: Part?, in root: Part) -> Part? {
        guard let part else { return nil }
        if part.isClosed || part.named != nil { return part }
        if let name = part.reference?.split(separator: "/").last {
            return mapping(root.definitions?[String(name)], in: root)
        }
        return ((part.anyOf ?? []) + (part.allOf ?? [])).lazy.compactMap { mapping($0, in: root) }.first
    }

    /// The mapping to which a path of keys leads.
    private func mapping(at path: String, in root: Part) -> Part? {
        path.split(separator: ".").reduce(root) { part, key in
            part.flatMap { mapping($0.named ?? $0.properties?[String(key)], in: root) }
        }
    }

    private func schema(_ name: String) throws -> Part {
        let project = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(4)
            .joined(separator: "/")
        let content = try HostFileSystem().content(
            ofFile: "\(project)/etc/schema/\(name).schema.json", limit: SourceText.maximumSize)
        guard case .bytes(let bytes) = content else { throw Missing() }
        return try JSONDecoder().decode(Part.self, from: Data(bytes))
    }

    private struct Missing: Error {}

    @Test("a schema has exactly the keys that are read", arguments: KeyCatalogue.Section.allCases)
    func keys(section: KeyCatalogue.Section) throws {
        let root = try schema(
            section == .sharedHook ? "hook" : section.isOfPipelines ? "pipeline" : "freshet")
        let part = try #require(mapping(at: section.path, in: root), "there is no mapping at '\(section.path)'")
        #expect(part.isClosed, "other keys are accepted too")
        #expect(Set((part.properties ?? [:]).keys) == Set(section.keys))
    }
}
