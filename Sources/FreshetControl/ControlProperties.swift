import FreshetVarlink

/// One entry of the flat list of names and values that ``all(of:)`` makes of a value, for scripts that do not read
/// JSON.
package struct ControlProperty: Hashable, Sendable {
    /// The path of the value: names of members and indexes of list elements (from 0), joined by full stops.
    package var name: String
    /// A text as it is, a number in decimal digits, `true` or `false`. Empty lists and objects have no entry.
    package var value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// All values inside a value, sorted by name; null values are left out, as in its JSON.
    package static func all(of value: some Encodable) -> [ControlProperty] {
        guard let tree = try? VarlinkParameters(encoding: value).decode(as: Tree.self) else { return [] }
        var properties: [ControlProperty] = []
        tree.flatten(into: &properties, below: "")
        return properties
    }
}

/// Any JSON value.
private enum Tree: Decodable {
    case text(String)
    case members([(name: String, value: Tree)])

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
        if let object = try? decoder.container(keyedBy: Name.self) {
            let names = object.allKeys.sorted { $0.stringValue < $1.stringValue }
            self = .members(try names.map { ($0.stringValue, try object.decode(Tree.self, forKey: $0)) })
        } else if var list = try? decoder.unkeyedContainer() {
            var members: [(String, Tree)] = []
            while !list.isAtEnd { members.append((String(members.count), try list.decode(Tree.self))) }
            self = .members(members)
        } else {
            let value = try decoder.singleValueContainer()
            if let truth = try? value.decode(Bool.self) {
                self = .text(String(truth))
            } else if let number = try? value.decode(Int64.self) {
                self = .text(String(number))
            } else if let number = try? value.decode(Double.self) {
                self = .text(String(number))
            } else {
                self = .text(value.decodeNil() ? "" : try value.decode(String.self))
            }
        }
    }

    func flatten(into properties: inout [ControlProperty], below path: String) {
        switch self {
        case .text(let value): properties.append(ControlProperty(name: path, value: value))
        case .members(let members):
            for (name, value) in members {
                value.flatten(into: &properties, below: path.isEmpty ? name : "\(path).\(name)")
            }
        }
    }
}
