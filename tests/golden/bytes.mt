# Bytes and integers become numbers where they are computed with.
data {
  train = idx("image", "count", "label")
  image : u8[2, 2]
  count : i32[1]
  label : class[3]
}

model {
  h = flatten(image) / 255 + count * 0.5
  y = linear(h, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
