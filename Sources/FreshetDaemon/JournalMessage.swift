/// The identifiers of what the daemon says in the journal (systemd.journal-fields(7), `MESSAGE_ID`): one for each kind
/// of message, for ever. `journalctl MESSAGE_ID=…` finds them.
enum JournalMessage: String {
    case ready = "ca5cf8103cb9486cb2151383aeadd847"
    case stopping = "2f145c47cc92434b9359d88f8a193d18"
    case changed = "66f71c85b7f24bbaaa0c0a4d5d7ec04a"
    case unchanged = "533d72ca7a914d4f9b91600b7869027c"
    case failed = "257972dd68734f17ae756b6dc5ace42b"
    case recovered = "f82d38fe28324e70bfd953fbd9ec25b2"
    case waiting = "dc89e0303b544fc889aa97e6daadf9e5"
    case reloaded = "369e7ef8dfd446099e6530e3fc46ab35"
    case reloadRefused = "ad7d0387f3ee4fdbb4f07230b67d6ff4"
    case faultyPipeline = "1c0e49dbdf174eb9a7fb4558f75abd3c"
    case cacheMended = "c7176e0f419246289ab9c463273b2aef"
    case cacheTrouble = "ab6bd2ed3512434ca37b15d55b5a9d3e"
    case network = "6400bcdb36024f2ebc67e8fc559dacd0"
    case resumed = "38988b34e4ce4065b5ede383ced9bfa8"
    case clockStepped = "045ea345332c48c79b66127d5877f2d4"
    case signal = "29c96b42cc944492b5532632c1c120b3"
}
