data {
  train  = text("input.txt", level = "bpe")
  window : class[280][13]
}
model {
  scores = linear(embedding(window[:12], 280, 8), 280)
}
train {
  loss      = cross_entropy(scores, window[1:])
  optimizer = adam(1e-3)
}
