import FreshetPipelines

/// The probe of a replay always finds the internet: a recording has no answers of probes.
struct ReplayProber: Probing {
    func probe(_ probe: NetworkProbe, epoch: UInt64) async throws(FetchError) {}
}
