/// The texts of a definition that have characters besides ASCII, as bytes. The definition itself compares its texts by
/// canonical equivalence (``Swift/String``), so it does not see a change of the normalization alone, for instance from
/// a letter with an accent to the letter and a combining accent. Empty for most definitions.
package struct ExactTexts: Hashable, Sendable {
    /// The texts that decide what the snapshot becomes.
    package var ofProduct: [UInt8] = []
    package var others: [UInt8] = []

    package init() {}
}
