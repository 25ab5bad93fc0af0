data {
  train = idx("images", "labels")
  image : u8[3, 8, 8]
  label : class[10]
}
model {
  seen, other, s = mixup(image, label)
  scores         = linear(flatten(seen), 10)
}
train {
  loss      = s * cross_entropy(scores, label) + (1 - s) * cross_entropy(scores, other)
  predict   = softmax(scores)
  optimizer = adam(1e-3)
  batch     = 1
}
