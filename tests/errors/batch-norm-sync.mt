# mtc --shards 4
data {
  train = idx("images", "labels")
  image : f32[5]
  label : class[10]
}

model {
  h      = batch_norm(linear(image, 8), sync = true)
  scores = linear(flatten(h), 10)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
