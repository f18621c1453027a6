module corelay.dev/peer

go 1.21
