/// A limit on hooks that run at the same time: hooks of one group, over all pipelines.
package struct HookLimit: Hashable, Sendable {
    /// The name of the group.
    package var group: String
    /// The most hooks of the group that run at the same time. All hooks of a group have the same number.
    package var atOnce: Int

    /// The allowed numbers. All hooks together have a limit, too, so a higher number would have no effect.
    package static let numbers = 1...HookMachine.concurrencyLimit

    package init(group: String, atOnce: Int) {
        self.group = group
        self.atOnce = atOnce
    }
}
