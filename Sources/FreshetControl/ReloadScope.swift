/// The runs that a reload of the configuration requests.
package enum ReloadScope: Hashable, Sendable {
    /// Those of new pipelines.
    case configurationOnly
    /// Those of new pipelines, and of changed pipelines whose copy is not one of their configuration any more.
    case changed
    /// All of these, and those of all pipelines that subscribe to the signal `reload`.
    case refresh
}
