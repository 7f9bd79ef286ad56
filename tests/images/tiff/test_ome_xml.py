from normeq.images.tiff.ome_xml import relocated


def test_every_way_to_write_an_element() -> None:
    xml = (
        b'<?xml version="1.0"?><o:OME xmlns:o="u"><o:Pixels A="1&gt;2"><o:Channel/>'
        b'<o:TiffData IFD="1"><o:UUID FileName="a>b"/></o:TiffData ><o:TiffData/><o:Plane/>'
        b"<o:TiffData\n IFD='3' ></o:TiffData></o:Pixels></o:OME>"
    )
    assert relocated(xml + b"\0", 3) == (
        b'<?xml version="1.0"?><o:OME xmlns:o="u"><o:Pixels A="1&gt;2"><o:Channel/>'
        b'<o:TiffData IFD="0" PlaneCount="3"/><o:Plane/></o:Pixels></o:OME>'
    )


def test_a_hundred_thousand_elements_take_one_pass() -> None:
    body = b"<TiffData>" + b'<UUID FileName="a"/></TiffData>'
    xml = b"<Pixels>" + body * 100_000 + b"</Pixels>"
    assert relocated(xml, 2) == b'<Pixels><TiffData IFD="0" PlaneCount="2"/></Pixels>'


def test_text_that_is_not_utf8_is_kept() -> None:
    xml = b"<Pixels Unit='\xb5m'><TiffData/></Pixels>"
    expected = '<Pixels Unit=\'µm\'><TiffData IFD="0" PlaneCount="2"/></Pixels>'
    assert relocated(xml, 2).decode() == expected
