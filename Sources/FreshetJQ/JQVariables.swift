import CJQ

/// What a program finds as `$name` besides its input.
///
/// libjq binds names to values when it compiles, which takes 13 ms. Here a program is compiled with the names alone: it
/// is given an array of the values and the input, and takes that apart before anything else. So a program that runs for
/// each of a thousand items is compiled once.
struct JQVariables: ~Copyable {
    /// The names in the order in which their values stand.
    let names: [String]
    private let values: JQValue

    init() { self.init([]) }

    /// - Parameter text: a JSON object; anything else has no variables, and a program that uses some does not compile.
    init(_ text: [UInt8]) {
        let object = JQValue(
            text.withUnsafeBytes { jv_parse_sized($0.bindMemory(to: CChar.self).baseAddress, Int32($0.count)) })
        var names: [String] = []
        var values = jv_array()
        if object.kind == JV_KIND_OBJECT {
            let keys = JQValue(jv_keys(object.consumed))
            for index in 0..<jv_array_length(keys.consumed) {
                let key = JQValue(jv_array_get(keys.consumed, index))
                names.append(key.words)
                values = jv_array_append(values, jv_object_get(object.consumed, key.consumed))
            }
        }
        self.names = names
        self.values = JQValue(values)
    }

    /// What stands before a program that has such variables.
    static func binding(_ names: [String]) -> String {
        guard !names.isEmpty else { return "" }
        let all = (names + [input]).map { "$" + $0 }
        return ". as [\(all.joined(separator: ","))] | $\(input) | "
    }

    /// What a program that has them is given instead of its input. The reference is the callee's.
    func bound(to input: borrowing JQValue) -> jv {
        names.isEmpty ? input.consumed : jv_array_append(values.consumed, input.consumed)
    }

    /// No name of a configuration's begins like that.
    private static let input = "__input"
}
