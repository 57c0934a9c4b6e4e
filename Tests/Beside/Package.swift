// swift-tools-version: 6.2
// Freshet's signals beside swift-async-algorithms in one file. A package of its own, so that nobody who uses Freshet
// has to fetch that one.
import PackageDescription

let package = Package(
    name: "beside",
    dependencies: [
        .package(name: "freshet", path: "../.."),
        .package(url: "https://github.com/apple/swift-async-algorithms", exact: "1.1.4"),
    ],
    targets: [
        .testTarget(
            name: "BesideTests",
            dependencies: [
                .product(name: "FreshetSignals", package: "freshet"),
                .product(name: "FreshetTestKit", package: "freshet"),
                .product(name: "AsyncAlgorithms", package: "swift-async-algorithms"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("InternalImportsByDefault"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
