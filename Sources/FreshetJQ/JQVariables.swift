import CJQ

/// The variables of a program (`$name`), which it gets besides its input.
///
/// libjq binds names to values when it compiles, which takes 13 ms. Freshet compiles a program with the names alone:
/// the program gets an array of the values and the input, and first binds the array's elements to the names. So a
/// program that runs for each of a thousand items is compiled once.
struct JQVariables: ~Copyable {
    /// The names, in the order of their values.
    let names: [String]
    private let values: JQValue

    init() { self.init([]) }

    /// - Parameter text: a JSON object. Anything else gives no variables, and a program that uses variables then does
    ///   not compile.
    init(_ text: [UInt8]) {
        let object = JQValue(
            text.withUnsafeBytes { jv_parse_sized($0.bindMemory(to: CChar.self).baseAddress, Int32($0.count)) })
        var names: [String] = []
        var values = jv_array()
        if object.kind == JV_KIND_OBJECT {
            let keys = JQValue(jv_keys(object.consumed))
            for index in 0..<jv_array_length(keys.consumed) {
                let key = JQValue(jv_array_get(keys.consumed, index))
                names.append(key.text)
                values = jv_array_append(values, jv_object_get(object.consumed, key.consumed))
            }
        }
        self.names = names
        self.values = JQValue(values)
    }

    /// The jq code that binds the variables; it precedes the program.
    static func binding(_ names: [String]) -> String {
        guard !names.isEmpty else { return "" }
        let all = (names + [input]).map { "$" + $0 }
        return ". as [\(all.joined(separator: ","))] | $\(input) | "
    }

    /// The input of a program with these variables: an array of their values and the original input. The callee
    /// consumes the reference.
    func bound(to input: borrowing JQValue) -> jv {
        names.isEmpty ? input.consumed : jv_array_append(values.consumed, input.consumed)
    }

    /// The internal name of the original input. Names in a configuration cannot begin with `__`.
    private static let input = "__input"
}
