import FreshetControl
import FreshetRender

/// A parameter as a row of `set` or as text.
enum ParameterView {
    static let columns: [Table.Column] = [
        .init("PARAMETER", shrinksTo: 12), .init("VALUE", shrinksTo: 12), .init("DEFAULT", shrinksTo: 8),
        .init("ALLOWED", shrinksTo: 12),
    ]

    static func row(_ parameter: ParameterStatus) -> [Table.Cell] {
        [
            Table.Cell(parameter.name), Table.Cell(value(parameter), parameter.isSet ? .good : .plain),
            Table.Cell(parameter.default.map(shown) ?? secret), Table.Cell(rule(parameter)),
        ]
    }

    /// Such as `language = de`.
    static func text(_ parameter: ParameterStatus) -> String {
        "\(parameter.name) = \(value(parameter))\(parameter.isSet ? "" : " (the default)")"
    }

    private static let secret = "(secret)"

    private static func value(_ parameter: ParameterStatus) -> String { parameter.value.map(shown) ?? secret }

    /// Quotes a value that is empty, or begins or ends with a space.
    private static func shown(_ value: String) -> String {
        value.isEmpty || value.hasPrefix(" ") || value.hasSuffix(" ") ? "\"\(value)\"" : value
    }

    private static func rule(_ parameter: ParameterStatus) -> String {
        parameter.choices?.map(shown).joined(separator: ", ") ?? parameter.pattern ?? "any text"
    }
}
