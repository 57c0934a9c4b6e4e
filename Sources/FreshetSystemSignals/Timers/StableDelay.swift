/// A delay that looks random among hosts and pipelines, but is constant for one host and pipeline: the requests of a
/// fleet are spread, and each machine keeps its rhythm across restarts.
public enum StableDelay {
    /// The fraction of any random delay for this machine and this pipeline: 0 or more, less than 1.
    ///
    /// The hash is FNV-1a of 64 bits over the identity, a zero byte and the name, with the finishing steps of
    /// SplitMix64, because the upper bits of FNV alone hardly differ for names that differ in their last letter. Its
    /// upper 53 bits are the fraction. Do not change it: a change would move every host's schedule.
    ///
    /// - Parameters:
    ///   - identity: Bytes that identify the machine, such as an identifier derived from the machine id.
    ///   - name: The pipeline's name.
    @inlinable
    public static func fraction(identity: some Sequence<UInt8>, name: String) -> Double {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        for byte in identity { add(byte) }
        add(0)
        for byte in name.utf8 { add(byte) }
        hash = (hash ^ hash >> 30) &* 0xbf58_476d_1ce4_e5b9
        hash = (hash ^ hash >> 27) &* 0x94d0_49bb_1331_11eb
        hash ^= hash >> 31
        return Double(hash >> 11) / 9_007_199_254_740_992  // 2^53
    }

    /// The delay as a fraction of `longest`: zero or more, less than `longest`.
    public static func delay(within longest: Duration, identity: some Sequence<UInt8>, name: String) -> Duration {
        max(.zero, longest) * fraction(identity: identity, name: name)
    }
}
